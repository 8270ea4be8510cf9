"""Asks the model the held-out questions, greedily, and counts exact answers.

    python evaluate.py                      # ../model on ../testdata/questions.jsonl
    python evaluate.py --int4 32            # the same with every matrix rounded to 4 bits, groups of 32
    python evaluate.py --long 100           # also 100 held-out counts of 600 to 1,000 tokens
"""

import argparse
import json
import os
import time

import torch

import data
import model as model_mod
import train

HERE = os.path.dirname(os.path.abspath(__file__))


class Cache:
    """Keys and values of a batch of sequences that all stand at the same column."""

    def __init__(self):
        self.kv = {}

    def put(self, layer, k, v):
        if layer in self.kv:
            k, v = torch.cat((self.kv[layer][0], k), 2), torch.cat((self.kv[layer][1], v), 2)
        self.kv[layer] = k, v
        return k, v

    def keep(self, rows):
        self.kv = {layer: (k[rows], v[rows]) for layer, (k, v) in self.kv.items()}


@torch.no_grad()
def answers(model, enc, questions, limit=1100):
    """The greedy answer to each question; prompts are padded on the left."""
    end = enc.tok.token_to_id(train.IM_END)
    prompts = [enc.text(f"{train.IM_START}user\n{q}{train.IM_END}\n{train.IM_START}assistant\n") for q in questions]
    size = max(map(len, prompts))
    pad = torch.tensor([size - len(p) for p in prompts])
    ids = torch.tensor([[0] * (size - len(p)) + p for p in prompts])
    live, out, cache = torch.arange(len(prompts)), [[] for _ in prompts], Cache()
    column = torch.arange(size)
    seen = column[None, :] >= pad[:, None]
    mask = seen[:, None, None, :] & (column[:, None] >= column)[None, None] | torch.eye(size, dtype=torch.bool)[None, None]
    pos = (column - pad[:, None]).clamp(min=0)
    for _ in range(limit):
        best = model.logits(model.hidden(ids, pos, mask, cache)[:, -1]).argmax(-1)
        more = best != end
        for row, token in zip(live.tolist(), best.tolist()):
            if token != end:
                out[row].append(token)
        if not more.any():
            break
        if not more.all():
            live, best, pad, pos, seen = live[more], best[more], pad[more], pos[more], seen[more]
            cache.keep(more)
        seen = torch.cat((seen, torch.ones(len(live), 1, dtype=torch.bool)), 1)
        ids, pos, mask = best[:, None], pos[:, -1:] + 1, seen[:, None, None, :]
    return [enc.tok.decode(o, skip_special_tokens=False) for o in out]


def round4(model, group):
    """Rounds every matrix of the layers to 4 bits with one scale for each group of inputs."""
    for name, p in model.named_parameters():
        if p.ndim == 2 and "embed" not in name:
            w = p.data.view(p.shape[0], -1, group)
            scale = w.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 7
            p.data = ((w / scale).round().clamp(-8, 7) * scale).view_as(p)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default=os.path.join(HERE, "..", "model"))
    p.add_argument("--questions", default=os.path.join(HERE, "..", "testdata", "questions.jsonl"))
    p.add_argument("--int4", type=int, default=0, metavar="GROUP")
    p.add_argument("--long", type=int, default=0)
    p.add_argument("--wrong", type=int, default=3, help="wrong answers to show of each kind")
    a = p.parse_args()
    torch.set_num_threads(2)
    model, enc = model_mod.load(a.model), train.Encoder(os.path.join(HERE, "..", "model"))
    if a.int4:
        round4(model, a.int4)
    with open(a.questions, encoding="utf-8") as f:
        asked = [json.loads(line) for line in f]
    if a.long:
        far = data.questions("test", a.long * 3, 3, data.Level(count_long=1), ["count"])
        asked += [dict(q, kind="count, long") for q in far if len(q["answer"]) >= 600][:a.long]
    for kind in dict.fromkeys(q["kind"] for q in asked):
        began = time.time()
        part = sorted((q for q in asked if q["kind"] == kind), key=lambda q: len(q["answer"]))
        got = sum((answers(model, enc, [q["question"] for q in part[i:i + 50]]) for i in range(0, len(part), 50)), [])
        wrong = [(q, g) for q, g in zip(part, got) if g != q["answer"]]
        print(f"{kind:12} {len(part) - len(wrong)} of {len(part)} exact, {100 - 100 * len(wrong) / len(part):.1f} %  ({time.time() - began:.0f} s)", flush=True)
        for q, g in wrong[:a.wrong]:
            print(f"    {q['question']!r}\n      want {q['answer'][-150:]!r}\n      got  {g[-150:]!r}")


if __name__ == "__main__":
    main()
