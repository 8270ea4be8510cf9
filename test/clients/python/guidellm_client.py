"""Measures a door with guidellm, as its users would: chats and completions.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo TOKENIZER=worker/demo/model python guidellm_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

door = os.environ["BASE_URL"].removesuffix("/v1")
guidellm = pathlib.Path(sys.executable).with_name("guidellm")
prompts, tokens = 6, 8


def measure(path: str, profile: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        subprocess.run(
            [guidellm, "run", "--disable-console", "--profile", f"kind={profile}"]
            + ["--backend", f"kind=openai_http,target={door},model={os.environ['MODEL']},request_format={path}"]
            + ["--constraint", f"kind=max_requests,count={prompts}"]
            + ["--data", f"kind=synthetic_text,prompt_tokens=24,output_tokens={tokens}"]
            + ["--tokenizer", f"kind=huggingface_auto,model={os.environ['TOKENIZER']}"]
            + ["--output", f"kind=json,path={report}"],
            check=True,
        )
        (benchmark,) = json.loads(report.read_text())["benchmarks"]
    requests = benchmark["requests"]
    assert not requests["errored"] and not requests["incomplete"], requests
    assert len(requests["successful"]) == prompts, len(requests["successful"])
    for request in requests["successful"]:
        assert request["output_metrics"]["text_tokens"] == tokens, request["output_metrics"]
        assert request["input_metrics"]["text_tokens"] > 0 and request["output"], request


measure("/v1/chat/completions", "synchronous")
measure("/v1/completions", "throughput,max_concurrency=3")
print("ok")
