"""Renders the chat templates of model families with transformers and writes
digests.json: nothing of the templates is kept but digests.

    pip install transformers==5.23.0 jinja2==3.1.6
    pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36
    python families.py FOLDER      # vendor/llama.cpp/models/templates of that package

`go run ./worker/template/families -templates FOLDER` then compares.
"""

import glob
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testdata"))

import cases
import vectors
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))


def conversations():
    base = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    plain = [{"role": "user", "content": "  What is 2+2? Grüße, 世界! "}]
    turns = [{"role": "system", "content": "You are terse."}] + plain + [
        {"role": "assistant", "content": "<think>\nadd\n</think>\n\nFour."}, {"role": "user", "content": "And \"3+3\" & <4>?"}]
    calls = json.loads(json.dumps(cases.CALLS))
    for m in calls:
        for c in m.get("tool_calls", []):
            if isinstance(c["function"]["arguments"], str):
                c["function"]["arguments"] = json.loads(c["function"]["arguments"])
    strings = json.loads(json.dumps(calls))
    for m in strings:
        for c in m.get("tool_calls", []):
            c["function"]["arguments"] = json.dumps(c["function"]["arguments"])
    parts = [{"role": "user", "content": [{"type": "text", "text": "Look here."}, {"type": "text", "text": "And there."}]}]
    reasoned = turns[:2] + [{"role": "assistant", "content": "Four.", "reasoning_content": "add them", "thinking": "add them"}, turns[3]]
    yield "plain", {**base, "messages": plain, "add_generation_prompt": True}
    yield "turns", {**base, "messages": turns, "add_generation_prompt": True}
    yield "closed", {**base, "messages": turns[:3], "add_generation_prompt": False}
    yield "silent", {**base, "messages": turns, "add_generation_prompt": True, "enable_thinking": False}
    yield "thinking", {**base, "messages": turns, "add_generation_prompt": True, "enable_thinking": True, "reasoning_effort": "high"}
    yield "tools", {**base, "messages": turns, "tools": cases.TOOLS, "add_generation_prompt": True}
    yield "calls", {**base, "messages": calls, "tools": cases.TOOLS, "add_generation_prompt": True}
    yield "call", {**base, "messages": calls[:1] + [{**calls[1], "tool_calls": calls[1]["tool_calls"][:1]}] + calls[2:3], "tools": cases.TOOLS, "add_generation_prompt": True}
    yield "strings", {**base, "messages": strings, "tools": cases.TOOLS, "add_generation_prompt": True}
    yield "parts", {**base, "messages": parts, "add_generation_prompt": True}
    yield "reasoned", {**base, "messages": reasoned, "add_generation_prompt": True}
    yield "empty", {**base, "messages": [], "add_generation_prompt": True}
    yield "wrong", {**base, "messages": [{"role": "assistant", "content": "x"}, {"role": "assistant", "content": "y"}, {"role": "mystery", "content": None}]}


def main():
    chat_template_utils.datetime = vectors.FixedTime
    talks = list(conversations())
    out = {"conversations": [{"name": n, "vars": v} for n, v in talks], "families": {}}
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.jinja"))):
        source = open(path, encoding="utf-8", newline="").read()
        results = {}
        for name, variables in talks:
            r = vectors.render(source, variables)
            results[name] = hashlib.sha256(r["text"].encode()).hexdigest()[:16] if "text" in r else "raised" if r["raised"] else "error"
            if len(sys.argv) > 3 and sys.argv[2:4] == [os.path.basename(path), name]:
                print(r.get("text", r))
        out["families"][os.path.basename(path)] = {"template": hashlib.sha256(source.encode()).hexdigest()[:16], "results": results}
    if len(sys.argv) > 3:
        return
    with open(os.path.join(HERE, "digests.json"), "w") as f:
        json.dump(out, f, ensure_ascii=False, indent=1)
        f.write("\n")
    print(len(out["families"]), "templates")


if __name__ == "__main__":
    main()
