"""Records what the tokenizers library makes of the 10,000 strings of texts.py
with the vocabularies of real models. Nothing of them is kept but digests.

    pip install tokenizers==0.23.3
    pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36
    python vocabularies.py FOLDER      # vendor/llama.cpp/models of that package: ggml-vocab-*.gguf

vocabularies.json then has, for each family, the digest of its file, its
tokenizer.json without the words, how these are filled in, and a digest for each
hundred strings. `make test` brings the files in and compares.
"""

import hashlib
import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "testdata"))

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors  # noqa: E402

import texts  # noqa: E402
import vectors  # noqa: E402

SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def read(path):
    """The values of a GGUF file."""
    data = open(path, "rb").read()
    at = 24

    def value(kind):
        nonlocal at
        if kind == 8:
            (n,) = struct.unpack_from("<Q", data, at)
            at += 8 + n
            return data[at - n:at].decode()
        if kind == 9:
            inner, n = struct.unpack_from("<IQ", data, at)
            at += 12
            return [value(inner) for _ in range(n)]
        (v,) = struct.unpack_from("<" + SIZES[kind], data, at)
        at += struct.calcsize("<" + SIZES[kind])
        return v

    (count,) = struct.unpack_from("<Q", data, 16)
    out = {}
    for _ in range(count):
        key = value(8)
        (kind,) = struct.unpack_from("<I", data, at)
        at += 4
        out[key] = value(kind)
    return out, hashlib.sha256(data).hexdigest()[:16]


def frame(t):
    """A tokenizer.json without its words."""
    spec = json.loads(t.to_str())
    for k in ("vocab", "merges"):
        spec["model"].pop(k, None)
    spec["added_tokens"] = []
    return spec


def level(*patterns, normalizer=None, **kw):
    return frame(vectors.byte_level(splits=list(patterns) or None, normalizer=normalizer, **kw))


def falcon():
    t = vectors.byte_level()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(False), pre_tokenizers.Split(vectors.Regex("[0-9][0-9][0-9]"), "isolated")])
    return frame(t)


def starcoder():
    t = vectors.byte_level()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    return frame(t)


def llama():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return frame(t)


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    return frame(t)


# The families, how their words are filled in, and the rest of their tokenizer.
FAMILIES = {
    "gpt-2": ("merges", lambda: level()),
    "llama-bpe": ("merges", lambda: level(vectors.LLAMA3, ignore_merges=True)),
    "qwen2": ("merges", lambda: level(vectors.QWEN2, normalizer=normalizers.NFC())),
    "qwen35": ("merges", lambda: level(vectors.QWEN35, normalizer=normalizers.NFC())),
    "deepseek-llm": ("merges", lambda: level(r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", vectors.DEEPSEEK)),
    "falcon": ("merges", falcon),
    "starcoder": ("merges", starcoder),
    "llama-spm": ("scores", llama),
    "phi-3": ("scores", llama),
    "bert-bge": ("pieces", bert),
}


def scored(tokens, scores):
    """Merges of the pairs that make a token, the best score first."""
    ids = {t: i for i, t in enumerate(tokens)}
    merges = []
    for token, score in zip(tokens, scores):
        local = [(token[:i], token[i:], score) for i in range(1, len(token)) if token[:i] in ids and token[i:] in ids]
        merges += sorted(local, key=lambda m: (ids[m[0]], ids[m[1]]))
    return [[a, b] for a, b, _ in sorted(merges, key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)]


def fill(spec, how, values):
    tokens, kinds = values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"]
    if how == "pieces":  # a word's beginning has the mark there, and its rest here
        tokens = [t[1:] if t.startswith("▁") else t if k == 3 else "##" + t for t, k in zip(tokens, kinds)]
    spec["model"]["vocab"] = {t: i for i, t in enumerate(tokens)}
    if how == "merges":
        spec["model"]["merges"] = [m.split(" ", 1) for m in values["tokenizer.ggml.merges"]]
    if how == "scores":
        spec["model"]["merges"] = scored(tokens, values["tokenizer.ggml.scores"])
    spec["added_tokens"] = [
        {"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": k == 3}
        for i, (t, k) in enumerate(zip(tokens, kinds)) if k in (3, 4)]
    return spec


def main():
    every = list(texts.strings())
    out = {}
    for name, (how, make) in FAMILIES.items():
        values, file = read(os.path.join(sys.argv[1], f"ggml-vocab-{name}.gguf"))
        spec = make()
        t = Tokenizer.from_str(json.dumps(fill(json.loads(json.dumps(spec)), how, values)))
        out[name] = {"file": file, "words": how, "frame": spec,
                     "digests": [vectors.digest(t, every[i:i + texts.BLOCK]) for i in range(0, len(every), texts.BLOCK)]}
        print(name, t.get_vocab_size())
    with open(os.path.join(HERE, "vocabularies.json"), "w") as f:
        json.dump(out, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
