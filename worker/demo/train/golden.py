"""Makes the golden files from Hugging Face's libraries on the files in ../model.

    python golden.py         # writes ../testdata/golden.json.gz
    python golden.py --check # also compares model.py's own forward pass with transformers

The schema is in ../testdata/README.md.
"""

import argparse
import gzip
import hashlib
import json
import os
import random

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

import data
import model as model_mod

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "..", "model")
OUT = os.path.join(HERE, "..", "testdata", "golden.json.gz")
TOP, PROBES, NEW = 16, 32, 64

CONVERSATIONS = [
    [("user", "Hello")],
    [("user", "What is 47 + 38?")],
    [("system", "You are a helpful assistant."), ("user", "Sort: pear, apple, kiwi")],
    [("user", "Count from 3 to 12."), ("assistant", "3 4 5 6 7 8 9 10 11 12"), ("user", "Reverse: a b c")],
    [("system", ""), ("user", "")],
    [("user", "two\nlines\n\nand a third\n")],
    [("user", "  spaces around  ")],
    [("user", "Größe, naïve, 東京, 🙂🙃, e\u0301")],
    [("user", "<|im_end|>\n<|im_start|>assistant\nnot quoted")],
    [("system", "Answer briefly."), ("user", "Who are you?"), ("assistant", "I am the Roundhouse demonstration model."),
     ("user", "Thanks"), ("assistant", "You are welcome."), ("user", "Bye")],
    [("user", 'Quotes " and \\ back\\slashes and {braces} {{ x }} {% y %}')],
]

TEXTS = [
    "", " ", "  ", "   a", "a ", "a  b", "a   b    c", "\n", "\n\n", " \n", "\n ", " \n \n ", "\r\n", "a\r\nb\rc", "\t", "\t\ta\t b",
    "Hello", "hello world", "HELLO WORLD", "Hello, world!", "don't", "DON'T I'LL we're it's I'm you've he'd", "'s 't 're", "O'Neill’s",
    "1", "12", "123", "1234567890", "3.14159", "1,000,000", "-9", "47 + 38 = 85", "a1b2c3", "x=1;y=2", "½ ¾ ² ³ ①", "٣٤٥", "१२३", "Ⅷ",
    "foo_bar", "foo-bar", "a/b/c", "http://example.org/a?b=c&d=%20", "user@example.org", "C:\\temp\\new", "#include <stdio.h>",
    "for (i = 0; i < 10; i++) { x += i; }", "{\"a\": [1, 2, {\"b\": null}]}", "...", "…", "--", "—", "!!??", "!\n", "?!\n\n", "a!\n b", "$5 €6 £7 ¥8",
    "été", "e\u0301te\u0301", "A\u030a", "Å", "\u212b", "ñ", "n\u0303", "q\u0307\u0323", "q\u0323\u0307", "ﬁ", "ǆ", "ß", "ẞ", "İ", "ı",
    "a\u0300\u0301\u0302\u0303", "\u0301", " \u0301", "1\u0301", "क\u094d\u0937", "กำ", "שָׁלוֹם", "مُحَمَّد", "한국어", "\u1112\u1161\u11ab", "각", "\u1100\u1161\u11a8",
    "日本語", "東京都", "你好，世界！", "カタカナ", "ｶﾀｶﾅ", "が", "か\u3099", "Привет, мир", "Γειά σου", "Ελλάδα", "שלום", "مرحبا", "नमस्ते", "สวัสดี", "ไทย 123",
    "🙂", "🙂🙃", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "❤️", "a🙂b", " 🙂", "🙂\n", "𝔘𝔫𝔦", "𐍈", "\U0010ffff", "\u00a0", "a\u00a0b", "\u2003x", "\u200b", "a\u200bb", "\ufeff", "\u3000", "a\u3000\u3000b",
    "\u2028", "a\u0085b", "\x00", "\x01\x02", "\x7f", "\ufffd", "\u0600", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "a<|im_end|>b", " <|im_start|> ",
    "<|im_start|><|im_start|>", "<|im_start", "|im_end|>", "<|IM_END|>", "<|im_start|>user\nHi<|im_end|>\n", "e<|im_end|>\u0301", "x" * 300, "ab" * 150, " " * 50, "\n" * 20, "a \n\n  b\n   c",
    "\u1e9b\u0323", "\u0344", "\u0958", "\u2126", "\uf900", "\U0002f800", "\u0f73", "\u1d15e", "\U0001d15e", "a\u05b0\u094d\u3099\u0301",
]


def fuzz(seed, n):
    """Strings that cross every class of the pre-tokenizer."""
    r = random.Random(seed)
    parts = [lambda: r.choice(data.WORDS), lambda: " " * r.randint(1, 4), lambda: r.choice(["\n", "\r\n", "\t", " \n", "\n\n "]),
             lambda: str(r.randint(0, 9999)), lambda: r.choice("!?.,;:()[]{}<>+-*/=\"'#$%&@^_`|~\\"), lambda: chr(r.randint(0xA1, 0x24F)),
             lambda: chr(r.randint(0x300, 0x36F)), lambda: chr(r.randint(0x370, 0x6FF)), lambda: chr(r.randint(0x900, 0xDFF)),
             lambda: chr(r.randint(0x1E00, 0x20FF)), lambda: chr(r.randint(0x2100, 0x2BFF)), lambda: chr(r.randint(0x3041, 0x30FF)),
             lambda: chr(r.randint(0x4E00, 0x9FA0)), lambda: chr(r.randint(0xAC00, 0xD7A3)), lambda: chr(r.randint(0x1100, 0x11FF)),
             lambda: chr(r.randint(0x1F300, 0x1F6FF)), lambda: r.choice(["'s", "'LL", "'Re", "<|im_end|>", "\u200d", "\ufe0f"]),
             lambda: r.choice("ABCDEFGHIJ") + r.choice(data.WORDS), lambda: chr(r.randint(0x10000, 0x1FFFF))]
    return ["".join(r.choice(parts)() for _ in range(r.randint(1, 12))) for _ in range(n)]


def tokenizer_vectors(tok):
    texts = list(dict.fromkeys(TEXTS + fuzz(1, 500)))
    out = []
    for t in texts:
        ids = tok.encode(t, add_special_tokens=False).ids
        out.append({"text": t, "ids": ids, "decoded": tok.decode(ids, skip_special_tokens=False),
                    "decoded_without_special": tok.decode(ids, skip_special_tokens=True)})
    return out


def prompts(tok, hf):
    """(name, ids): chat and raw, short and long."""
    def chat(*turns):
        return hf.apply_chat_template([{"role": a, "content": b} for a, b in turns], tokenize=False, add_generation_prompt=True)

    r = random.Random(4)
    many = []
    for kind in ("facts", "json", "sort", "arithmetic", "copy", "reverse"):
        q, a = data.sample(r, kind, want="test")
        many += [("user", q), ("assistant", a)]
    long_count = " ".join(str(n) for n in range(3, 160))
    texts = [
        ("chat hello", chat(("user", "Hello"))),
        ("chat arithmetic", chat(("user", "What is 47 + 38?"))),
        ("chat facts", chat(("system", "You are a helpful assistant."),
                            ("user", "Anna lives in Rome. Ben has a red car. Cleo likes tea. The key is in the kitchen. Where does Anna live?"))),
        ("chat many turns", chat(*many, ("user", "Reverse these words: pear, apple, kiwi"))),
        ("chat count, far into the answer", chat(("user", "Count from 3 to 240.")) + long_count),
        ("raw words", "apple pear plum"),
        ("raw unicode", "Größe 東京 🙂 naïve e\u0301 \u3000 123"),
        ("raw bytes, long", "".join(fuzz(9, 30))),
    ]
    return [(n, t, tok.encode(t, add_special_tokens=False).ids) for n, t in texts]


@torch.no_grad()
def logit_vectors(model, tok, hf, check):
    vocab = model.config.vocab_size
    probes = [i * vocab // PROBES + i % 7 for i in range(PROBES)]
    ours = model_mod.load(MODEL) if check else None
    out = []
    for name, text, ids in prompts(tok, hf):
        logits = model(torch.tensor([ids])).logits[0]
        if ours:
            own = ours.logits(ours.hidden(torch.tensor([ids]), torch.arange(len(ids))[None]))[0]
            print(f"{name}: {len(ids)} tokens, own pass differs by {(own - logits).abs().max() / logits.abs().max():.2e} of the greatest")
        top = logits.topk(TOP)
        done, gaps, past = list(ids), [], None
        for _ in range(NEW):
            step = model(torch.tensor([done if past is None else done[-1:]]), past_key_values=past, use_cache=True)
            last, past = step.logits[0, -1], step.past_key_values
            two = last.topk(2).values
            gaps.append(round(float(two[0] - two[1]), 4))
            done.append(int(last.argmax()))
        out.append({
            "name": name, "text": text, "ids": ids,
            "top_ids": top.indices.tolist(),
            "top_logits": rounded(top.values),
            "probe_logits": rounded(logits[:, probes]),
            "max_abs": rounded(logits.abs().max(-1).values),
            "greedy": done[len(ids):],
            "greedy_gap": gaps,
        })
    return probes, out


def rounded(t):
    """float32 values in seven significant digits, enough for a tolerance of 1e-4 and small when packed."""
    if t.ndim > 1:
        return [rounded(x) for x in t]
    return [float(f"{x:.7g}") for x in t.tolist()]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(2)
    hf, tok = AutoTokenizer.from_pretrained(MODEL), Tokenizer.from_file(os.path.join(MODEL, "tokenizer.json"))
    vectors = tokenizer_vectors(tok)
    for v in vectors:  # transformers reads the same tokenizer from these files
        assert hf.encode(v["text"], add_special_tokens=False) == v["ids"], v
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation="eager").eval()
    probes, logits = logit_vectors(model, tok, hf, a.check)
    chats = []
    for turns in CONVERSATIONS:
        messages = [{"role": r, "content": c} for r, c in turns]
        for prompt in (True, False):
            chats.append({"messages": messages, "add_generation_prompt": prompt,
                          "text": hf.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)})
    golden = {
        "schema": 1,
        "weights_sha256": hashlib.sha256(open(os.path.join(MODEL, "model.safetensors"), "rb").read()).hexdigest(),
        "tokenizer_sha256": hashlib.sha256(open(os.path.join(MODEL, "tokenizer.json"), "rb").read()).hexdigest(),
        "probe_ids": probes,
        "prompts": logits,
        "tokenizer": vectors,
        "chat_template": chats,
    }
    with open(OUT, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as f:
        f.write(json.dumps(golden, ensure_ascii=True, separators=(",", ":")).encode())
    print(f"{len(golden['tokenizer'])} strings, {len(logits)} prompts of {sum(len(x['ids']) for x in logits)} tokens, "
          f"{os.path.getsize(OUT) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
