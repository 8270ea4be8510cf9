"""Evaluates a model behind a door with lm-evaluation-harness, as its users would: sums to
be chosen (log-probabilities of completions) and to be said (completions and chats).

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo TOKENIZER=worker/demo/model python lmeval_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import json
import os
import pathlib
import tempfile
import urllib.request

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

base, model, tokenizer = os.environ["BASE_URL"], os.environ["MODEL"], os.environ["TOKENIZER"]
SUMS = [(47, 38), (12, 9), (3, 4), (50, 25), (8, 8), (20, 31)]
DOCS = [
    {"q": f"What is {a} + {b}?", "choices": [f"{a} + {b} = {a + b + off}" for off in (1, 0, 10)], "right": 1}
    for a, b in SUMS
]
CHOSEN = """task: chosen
output_type: multiple_choice
doc_to_choice: choices
doc_to_target: right
metric_list: [{metric: acc}]
"""
SAID = """task: said
output_type: generate_until
doc_to_target: "{{choices[right]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 32}
metric_list: [{metric: exact_match}]
"""


def post(path: str, **body: object) -> dict:
    request = urllib.request.Request(
        base.removesuffix("/v1") + path,
        json.dumps({"model": model, **body}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def score(prompt: list[int], choice: str) -> float:
    """The log-probability of a choice behind a prompt, by prompt_logprobs."""
    text = post("/detokenize", tokens=prompt)["prompt"]
    tokens = post("/tokenize", prompt=text + choice, add_special_tokens=False)["tokens"]
    assert tokens[: len(prompt)] == prompt, (text, choice)
    answer = post("/v1/completions", prompt=tokens, max_tokens=1, temperature=0, prompt_logprobs=0)
    told = answer["choices"][0]["prompt_logprobs"]
    return sum(told[i][str(tokens[i])]["logprob"] for i in range(len(prompt), len(tokens)))


def say(q: str) -> str:
    answer = post("/v1/chat/completions", messages=[{"role": "user", "content": q}], max_tokens=32, temperature=0)
    return answer["choices"][0]["message"]["content"]


def evaluate(folder: str, kind: str, path: str, *tasks: str) -> dict:
    arguments = f"model={model},base_url={base}{path},num_concurrent=4,max_retries=1"
    if kind == "local-completions":
        arguments += f",tokenizer_backend=huggingface,tokenizer={tokenizer}"
    return simple_evaluate(
        model=kind,
        model_args=arguments,
        tasks=list(tasks),
        task_manager=TaskManager(include_path=folder, include_defaults=False),
        apply_chat_template=True,
        bootstrap_iters=0,
    )


def main() -> None:
    scores = []
    for doc in DOCS:
        prompt = post("/tokenize", messages=[{"role": "user", "content": doc["q"]}])["tokens"]
        scores.append([score(prompt, choice) for choice in doc["choices"]])
    chosen = [max(range(3), key=s.__getitem__) == 1 for s in scores]
    said = [say(doc["q"]) for doc in DOCS]
    right = [text == doc["choices"][1] for text, doc in zip(said, DOCS)]
    assert 0 < sum(chosen) and 0 < sum(right), (scores, said)

    with tempfile.TemporaryDirectory() as folder:
        docs = pathlib.Path(folder, "docs.jsonl")
        docs.write_text("".join(json.dumps(doc) + "\n" for doc in DOCS))
        for name, text in ("chosen", CHOSEN), ("said", SAID):
            common = f'dataset_path: json\ndataset_kwargs: {{data_files: {{test: "{docs}"}}}}\ntest_split: test\n'
            common += 'doc_to_text: "{{q}}"\ntarget_delimiter: ""\n'
            pathlib.Path(folder, name + ".yaml").write_text(text + common)
        texts = evaluate(folder, "local-completions", "/completions", "chosen", "said")
        chats = evaluate(folder, "local-chat-completions", "/chat/completions", "said")

    assert texts["results"]["chosen"]["acc,none"] == sum(chosen) / len(DOCS), texts["results"]
    for sample in texts["samples"]["chosen"]:
        # The harness counts the white space at the prompt's end to each choice: a constant.
        theirs = [answers[0][0] for answers in sample["resps"]]
        ours = scores[sample["doc_id"]]
        away = [a - b for a, b in zip(theirs, ours)]
        assert max(away) - min(away) < 1e-3, (sample["doc"], theirs, ours)
    for result in texts, chats:
        assert result["results"]["said"]["exact_match,none"] == sum(right) / len(DOCS), result["results"]
        for sample in result["samples"]["said"]:
            assert sample["resps"][0][0] == said[sample["doc_id"]], (sample["resps"], said)


main()
print("ok")
