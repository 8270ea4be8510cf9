"""Measures a door with `vllm bench serve`, as its users would: chats and completions.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo TOKENIZER=worker/demo/model python vllmbench_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

door = os.environ["BASE_URL"].removesuffix("/v1")
vllm = pathlib.Path(sys.executable).with_name("vllm")
prompts, tokens = 6, 8


def measure(backend: str, path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [vllm, "bench", "serve", "--backend", backend, "--base-url", door, "--endpoint", path]
            + ["--model", os.environ["MODEL"], "--tokenizer", os.environ["TOKENIZER"], "--dataset-name", "random"]
            + ["--random-input-len", "24", "--random-output-len", str(tokens), "--num-prompts", str(prompts)]
            + ["--ignore-eos", "--disable-tqdm", "--save-result", "--save-detailed"]
            + ["--result-dir", folder, "--result-filename", "result.json"],
            check=True,
        )
        result = json.loads(pathlib.Path(folder, "result.json").read_text())
    assert result["completed"] == prompts and result["failed"] == 0, result
    assert not any(result["errors"]), result["errors"]
    assert result["output_lens"] == [tokens] * prompts, result["output_lens"]
    assert all(t > 0 for t in result["ttfts"]), result["ttfts"]
    # Every token has an event of its own, and so a time of its own.
    assert all(len(itls) >= tokens - 1 for itls in result["itls"]), result["itls"]


measure("openai-chat", "/v1/chat/completions")
measure("openai", "/v1/completions")
print("ok")
