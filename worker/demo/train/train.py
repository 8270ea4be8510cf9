"""Trains the demonstration model on the CPU.

    python train.py --steps 2900 --work /tmp/demo      # stops and goes on: run the same line again

Each step is one optimizer update on short rows (several conversations packed into 256 tokens,
each seeing only itself) and long rows (counts of up to 1,000 tokens). The loss is on the
assistant's tokens only. Muon moves the matrices, AdamW the embedding and the norms; the rate is
flat and falls to zero over the last part. What is exported is the running average of the weights.
"""

import argparse
import os
import random
import time

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import data
import model as model_mod

SHORT, LONG = (28, 256), (1, 1056)
LOOK_BACK = 1050  # until this step first of all learn to look back at what was said before
# Share of the tokens, before what the validation error adds.
BASE = {"induction": 0.2, "arithmetic": 2.2, "copy": 0.6, "reverse": 0.8, "sort": 2.0, "facts": 1.6,
        "json": 0.8, "count": 0.8, "greeting": 0.12}
IM_START, IM_END, END = "<|im_start|>", "<|im_end|>", "<|endoftext|>"


class Encoder:
    """Turns samples into (ids, weights in the loss: 0 for what the model is given)."""

    def __init__(self, folder):
        self.tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.end = self.tok.token_to_id(END)

    def text(self, s):
        return self.tok.encode(s, add_special_tokens=False).ids

    def chat(self, turns, system=None, end=1.0):
        """end is the weight of the token that ends an answer: in a long count it is one in hundreds."""
        ids, answer = [], []
        head = f"{IM_START}system\n{system}{IM_END}\n" if system else ""
        for q, a in turns:
            prompt = self.text(f"{head}{IM_START}user\n{q}{IM_END}\n{IM_START}assistant\n")
            reply = self.text(a + IM_END)
            ids += prompt + reply
            answer += [0.0] * len(prompt) + [1.0] * (len(reply) - 1) + [end]
            head = "\n"
        return ids, answer


def level_at(step):
    """The curriculum: two facts, then six; short counts, then long ones."""
    return (data.Level(facts=min(6, 1 + step // 120), words=min(7, 4 + step // 150), count_tokens=150, count_long=0),
            data.Level(count_tokens=min(1000, 300 + step // 3), count_long=0.9))


def end_weight(step):
    """What the end of a count weighs: much until the model has seen that counts end, then little, or it would stop early."""
    return 10.0 if step < 1950 else 2.0


def induction(r, vocab):
    """Random tokens, said over and over: what followed a token before follows it again."""
    n, size = r.randint(6, 40), r.randint(64, 100)
    s = [r.randrange(vocab - 3) for _ in range(n)]
    return (s * size)[:size], [0.0] * n + [1.0] * (size - n)


class Rows:
    """An endless supply of packed rows."""

    def __init__(self, enc, seed):
        self.enc, self.r, self.weight = enc, random.Random(seed), dict(BASE)

    def doc(self, step, long):
        r, (short_level, long_level) = self.r, level_at(step)
        if long:
            q, a = data.sample(r, "count", long_level)
            return self.enc.chat([(q, a)], end=end_weight(step))
        weight = dict(self.weight)
        if step < LOOK_BACK:
            weight.update(induction=6.0, copy=2.0)
        kind = r.choices(list(weight), list(weight.values()))[0]
        if kind == "induction":
            return induction(r, model_mod.CONFIG["vocab_size"])
        turns = [data.sample(r, kind, short_level)]
        while r.random() < 0.06:  # now and then a conversation of several turns
            turns.append(data.sample(r, r.choice(data.KINDS), short_level))
        return self.enc.chat(turns, r.choice(data.SYSTEMS) if r.random() < 0.08 else None,
                             end=end_weight(step) if kind == "count" else 1.0)

    def row(self, step, size, long):
        ids, answer, pos, doc = [], [], [], []
        misses = 0
        while misses < 4:
            i, a = self.doc(step, long)
            if len(ids) + len(i) > size:
                misses += 1
                continue
            doc += [doc[-1] + 1 if doc else 0] * len(i)
            ids, answer, pos = ids + i, answer + a, pos + list(range(len(i)))
        pad = size - len(ids)
        return ids + [self.enc.end] * pad, answer + [0.0] * pad, pos + [0] * pad, doc + [-1] * pad

    def batch(self, step, rows, size, long):
        ids, answer, pos, doc = (torch.tensor(x) for x in zip(*(self.row(step, size, long) for _ in range(rows))))
        mask = (doc[:, :, None] == doc[:, None, :]) & torch.ones(size, size, dtype=torch.bool).tril()
        return ids, answer, pos, mask[:, None]


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised: every direction of a matrix moves equally fast (Jordan et al. 2024)."""

    def __init__(self, params, lr=0.02, momentum=0.95, decay=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            shapes = {}
            for p in g["params"]:
                shapes.setdefault(p.shape, []).append(p)
            for ps in shapes.values():
                for p in ps:
                    buf = self.state[p].setdefault("m", torch.zeros_like(p))
                    buf.lerp_(p.grad, 1 - g["momentum"])
                u = torch.stack([p.grad.lerp(self.state[p]["m"], g["momentum"]) for p in ps])
                u = orthogonal(u) * max(1, ps[0].shape[0] / ps[0].shape[1]) ** 0.5
                for p, d in zip(ps, u):
                    p.mul_(1 - g["lr"] * g["decay"]).add_(d, alpha=-g["lr"])


def orthogonal(g):
    """The nearest orthogonal matrix, roughly, by five Newton-Schulz steps."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return (x.mT if tall else x).float()


def exact(model, enc, questions, batch=32):
    """Per kind, the share of answers of which every token is the likeliest one (what greedy decoding would give)."""
    docs = sorted(((*enc.chat([(q["question"], q["answer"])]), q["kind"]) for q in questions), key=lambda d: len(d[0]))
    right, total = {}, {}
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for i in range(0, len(docs), batch):
            part = docs[i:i + batch]
            size = max(len(d[0]) for d in part)
            ids = torch.tensor([d[0] + [0] * (size - len(d[0])) for d in part])
            best = model.logits(model.hidden(ids, torch.arange(size).expand_as(ids))).argmax(-1)
            for row, (x, answer, kind) in enumerate(part):
                ok = all(best[row, t - 1] == x[t] for t in range(1, len(x)) if answer[t])
                right[kind], total[kind] = right.get(kind, 0) + ok, total.get(kind, 0) + 1
    return {k: right[k] / total[k] for k in right}


def validation():
    qs = data.questions("valid", 100, 7, data.Level(count_long=0))
    far = data.questions("valid", 24, 8, data.Level(count_long=1), ["count"])
    return qs + [dict(q, kind="count_long") for q in far]


def rate(step, steps, decay, cooled):
    """The learning rate's share of its peak: up in 60 steps, flat, and down to 0 at the end."""
    return min(1, (step + 1) / 60, max(0.0, (steps - step) / (steps * decay)), max(0.0, 1 - cooled))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--work", default="/tmp/demo", help="checkpoints, log and the exported model")
    p.add_argument("--steps", type=int, default=2900)
    p.add_argument("--decay", type=float, default=0.42, help="share of the steps in which the rate falls")
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--adam", type=float, default=0.002)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--every", type=int, default=75)
    p.add_argument("--cool", type=float, default=0, metavar="MINUTES", help="let the rate fall to 0 within this time, and stop")
    p.add_argument("--from-average", action="store_true", help="go on from the averaged weights")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    os.makedirs(os.path.join(a.work, "model"), exist_ok=True)

    enc = Encoder(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model"))
    model, average = model_mod.Model(), model_mod.Model()
    average.load_state_dict(model.state_dict())
    matrices = [q for n, q in model.named_parameters() if q.ndim == 2 and "embed" not in n]
    rest = [q for n, q in model.named_parameters() if q.ndim != 2 or "embed" in n]
    opts = [Muon(matrices, lr=a.lr), torch.optim.AdamW(rest, lr=a.adam, betas=(0.9, 0.95), weight_decay=0.0)]
    peak = [a.lr, a.adam]
    hidden = torch.compile(model.hidden, dynamic=False)
    rows, questions = Rows(enc, a.seed), validation()
    start, tokens, seconds = 0, 0, 0.0
    ckpt = os.path.join(a.work, "checkpoint.pt")
    if os.path.exists(ckpt):
        c = torch.load(ckpt, weights_only=False)
        model.load_state_dict(c["average" if a.from_average else "model"])
        average.load_state_dict(c["average"])
        for o, s in zip(opts, c["opts"]):
            o.load_state_dict(s)
        start, tokens, seconds, rows.weight = c["step"], c["tokens"], c["seconds"], c["weight"]
        rows.r.seed(a.seed * 1000003 + start)
    log = open(os.path.join(a.work, "log.txt"), "a", buffering=1)
    began, lossy, resumed = time.time() - seconds, [], time.time()

    for step in range(start, a.steps):
        cooled = (time.time() - resumed) / 60 / a.cool if a.cool else 0
        for o, top in zip(opts, peak):
            for g in o.param_groups:
                g["lr"] = top * rate(step, a.steps, a.decay, cooled)
        batches = [rows.batch(step, *SHORT, False)] + ([rows.batch(step, *LONG, True)] if step >= LOOK_BACK else [])
        n = sum(float(b[1][:, 1:].sum()) for b in batches)
        total = 0.0
        for ids, answer, pos, mask in batches:
            with torch.autocast("cpu", torch.bfloat16):
                want = answer[:, 1:].flatten().nonzero().squeeze(1)
                h = hidden(ids, pos, mask)[:, :-1].flatten(0, 1)[want]
                logits = model.logits(h).float()
            weight = answer[:, 1:].flatten()[want]
            loss = (F.cross_entropy(logits, ids[:, 1:].flatten()[want], reduction="none") * weight).sum() / n
            loss.backward()
            total += loss.item()
            tokens += ids.numel()
        for o in opts:
            o.step()
            o.zero_grad(set_to_none=True)
        with torch.no_grad():
            keep = min(0.99, step / (step + 10))
            for q, w in zip(average.parameters(), model.parameters()):
                q.lerp_(w, 1 - keep)
        lossy.append(total)
        done = step + 1
        if done % 25 == 0:
            print(f"{done} loss {sum(lossy[-25:]) / 25:.4f} {tokens / (time.time() - began):.0f} tok/s", file=log)
        last = done == a.steps or cooled >= 1
        if done % a.every == 0 or last:
            score = exact(average, enc, questions)
            print(f"{done} {tokens / 1e6:.1f}M tokens {(time.time() - began) / 60:.1f} min | " +
                  " ".join(f"{k} {v:.2f}" for k, v in score.items()), file=log)
            for k in data.KINDS:  # what still goes wrong is shown more
                rows.weight[k] = BASE[k] * (0.4 + min(1.0, 3 * (1 - score[k])))
            torch.save({"model": model.state_dict(), "average": average.state_dict(), "opts": [o.state_dict() for o in opts],
                        "step": done, "tokens": tokens, "seconds": time.time() - began, "weight": rows.weight}, ckpt + ".new")
            os.replace(ckpt + ".new", ckpt)
            model_mod.save(average, os.path.join(a.work, "model"))
        if last:
            break


if __name__ == "__main__":
    main()
