# Writes streams.json: what vLLM's own parsers say of outputs.json as it comes, in random
# pieces of whole tokens. One answer for each text that does not depend on the pieces, or
# those that there are, the most frequent first.
# Run with the Python of an installed vLLM, in this folder: python streams.py
import collections
import io
import json
import random
from contextlib import redirect_stdout

with redirect_stdout(io.StringIO()):
    with open("vectors.py") as f:
        source = f.read().split("out = []")[0]
exec(source)

CUTTINGS = 20
rng = random.Random(1)


def pieces(text):
    """The text as whole characters and special tokens, each with its ids."""
    out, at = [], 0
    while at < len(text):
        found = next((s for s in sorted(SPECIAL, key=len, reverse=True) if text.startswith(s, at)), text[at])
        out.append((found, tokenizer.encode(found, add_special_tokens=False)))
        at += len(found)
    return out


def cut(parts):
    """Runs of parts, short ones and long ones."""
    most = rng.choice([1, 2, 5, 20, 60])
    out = []
    while parts:
        n = rng.randint(1, most)
        out.append(("".join(t for t, _ in parts[:n]), [i for _, ids in parts[:n] for i in ids]))
        parts = parts[n:]
    return out


def stream(kind, name, cuts):
    """What the deltas of one parser come to."""
    tool = kind.startswith("tools")
    p = make(ToolParserManager.get_tool_parser(name), request.tools) if tool else make(ReasoningParserManager.get_reasoning_parser(name))
    text, ids, got = "", [], {"reasoning": "", "content": "", "calls": []}
    for piece, more in cuts:
        args = (text, text + piece, piece, ids, ids + more, more)
        d = p.extract_tool_calls_streaming(*args, request) if tool else p.extract_reasoning_streaming(*args)
        text, ids = text + piece, ids + more
        if d is None:
            continue
        got["reasoning"] += d.reasoning or ""
        got["content"] += d.content or ""
        for c in d.tool_calls or []:
            while len(got["calls"]) <= c.index:
                got["calls"].append(["", ""])
            if c.function:
                got["calls"][c.index][0] += c.function.name or ""
                got["calls"][c.index][1] += c.function.arguments or ""
    return got


rows, runs = [], 0
for kind, parsers in data["outputs"].items():
    for name in parsers["parsers"]:
        for text in parsers["texts"]:
            seen = collections.Counter()
            for _ in range(CUTTINGS):
                runs += 1
                try:
                    got = json.dumps(stream(kind, name, cut(pieces(text))), ensure_ascii=False)
                except Exception as e:  # what vLLM cannot take says nothing of ours
                    got = json.dumps({"error": type(e).__name__})
                seen[got] += 1
            rows.append({"kind": kind, "parser": name, "text": text, "answers": [dict(json.loads(g), times=n) for g, n in seen.most_common(4)]})
with open("streams.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n]\n")
print(len(rows), "texts,", runs, "cuttings,", sum(len(r["answers"]) > 1 for r in rows), "texts whose answer depends on them")
