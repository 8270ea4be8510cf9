"""Trains one small tokenizer of each kind on text of ours and records what the
tokenizers library makes of the 10,000 strings of texts.py.

    pip install tokenizers==0.23.3
    python vectors.py        # writes parts.json, NAME.json.gz for each kind, and digests.json

digests.json holds, for each kind and each hundred strings, a digest of the
ids without and with special tokens and of the decoded text without and with
special tokens.
"""


import gzip
import hashlib
import json
import os
import struct
import subprocess
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import texts

HERE = os.path.dirname(os.path.abspath(__file__))

TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
FOLD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = FOLD + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
QWEN2 = FOLD + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
QWEN35 = FOLD + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL
UP, LOW = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT4O = (r"[^\r\n\p{L}\p{N}]?" + UP + "*" + LOW + "+" + FOLD + r"?|[^\r\n\p{L}\p{N}]?" + UP + "+" + LOW + "*" + FOLD +
         r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL)
TEKKEN = (r"[^\r\n\p{L}\p{N}]?" + UP + "*" + LOW + "+" + r"|[^\r\n\p{L}\p{N}]?" + UP + "+" + LOW + "*" +
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL)
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" +
            r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + TAIL)
# Patterns that no scanner is written for.
ODD = [r"[\r\n]", r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿΑ-Ωα-ωА-Яа-я]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", r"[一-龥ࠀ-一가-힟]+", r"\p{N}{2}+", r"(?=[A-Z])[A-Za-z]{2,4}?x|(?>a+)b|[:x][é]|\w{3,}(?i:ss)"]


def corpus():
    words = [p for p in texts.PARTS if not p.startswith("hex:") and not p.startswith("<") and not p.startswith("[")]
    for i in range(3000):
        r = texts.SplitMix64(1_000_000 + i)
        yield " ".join(words[r.next() % len(words)] for _ in range(30))
    for i in range(600):
        r = texts.SplitMix64(2_000_000 + i)
        yield "".join(words[r.next() % 80] for _ in range(30))


def special(text, **kw):
    return AddedToken(text, special=True, normalized=False, **kw)


def byte_level(pattern=None, normalizer=None, splits=None, **bpe):
    t = Tokenizer(models.BPE(**bpe))
    if normalizer:
        t.normalizer = normalizer
    if splits is None:
        splits = [pattern] if pattern else []
    parts = [pre_tokenizers.Split(Regex(p), behavior="isolated") for p in splits]
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not parts)
    t.pre_tokenizer = pre_tokenizers.Sequence(parts + [level]) if parts else level
    t.decoder = decoders.ByteLevel()
    return t


def train_bpe(t, size=500, alphabet=True, **kw):
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [], show_progress=False, **kw))
    return t


def chat_tokens(t):
    t.add_special_tokens([special(x) for x in ("<|im_start|>", "<|im_end|>", "<|end|>")])
    t.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    return t


def gpt2():
    t = train_bpe(byte_level())
    t.add_special_tokens([special("<s>"), special("</s>"), special("<mask>", lstrip=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    return t


def llama3():
    t = chat_tokens(train_bpe(byte_level(LLAMA3, ignore_merges=True), special_tokens=["<s>"]))
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", t.token_to_id("<s>"))])])
    return t


def qwen2():
    return chat_tokens(train_bpe(byte_level(QWEN2, normalizers.NFC())))


def falcon():
    t = byte_level()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    return train_bpe(t)


def starcoder():
    t = byte_level()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)])
    t = train_bpe(t)
    t.add_tokens([AddedToken("word", single_word=True, normalized=True), AddedToken("[MASK]", rstrip=True, lstrip=True, normalized=True)])
    return t


def spelled():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.ByteLevel()])
    t.pre_tokenizer = pre_tokenizers.Split(Regex("Ġ?[a-zA-Z]+|[^a-zA-Z]"), "isolated")
    t.decoder = decoders.ByteLevel()
    return train_bpe(t)


BYTES = [f"<0x{i:02X}>" for i in range(256)]


def llama2():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    train_bpe(t, 700, alphabet=False, special_tokens=["<unk>", "<s>", "</s>"] + BYTES, limit_alphabet=80)
    spec = json.loads(t.to_str())
    spec["pre_tokenizer"] = None
    spec["added_tokens"] = spec["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(spec))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return t


def gemma():
    t = Tokenizer.from_str(llama2().to_str())
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("   ", normalized=False)])
    return t


def first():
    t = Tokenizer.from_str(llama2().to_str())
    t.normalizer = None
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return t


def no_fallback():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.decoder = decoders.BPEDecoder("</w>")
    return train_bpe(t, 600, alphabet=False, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=90)


def charsmap(pairs):
    """Builds SentencePiece's table: a double array as darts-clone lays it out."""
    block, value = b"", {}
    for k, v in pairs:
        value[k.encode() + b"\x00"] = len(block)
        block += v.encode() + b"\x00"
    units, used = {0: 0}, {0}

    def place(prefix, at):
        labels = sorted({k[len(prefix)] for k in value if k.startswith(prefix) and len(k) > len(prefix)})
        base = 1
        while any((base ^ c) in used for c in labels) or (base ^ at) >= 1 << 21:
            base += 1
        units[at] = units.get(at, 0) | (base ^ at) << 10
        if 0 in labels:
            units[at] |= 1 << 8
        for c in labels:
            used.add(base ^ c)
            units[base ^ c] = c if c else value[prefix + b"\x00"] | 1 << 31
        for c in labels:
            if c:
                place(prefix + bytes([c]), base ^ c)
    place(b"", 0)
    table = b"".join(struct.pack("<I", units.get(i, 0)) for i in range((max(units) | 255) + 1))
    return struct.pack("<I", len(table)) + table + block


CHARSMAP = charsmap([("ﬁ", "fi"), ("½", "1/2"), ("①", "1"), ("\u3000", " "), ("\u00a0", " "), ("\u00ad", ""), ("\t", " "), ("\n", " "),
                     ("A\u030a", "Å"), ("e\u0301", "é"), ("ｆ", "f"), ("ｕ", "u"), ("ｌ", "l"), ("㌔", "キロ"), ("ª", "a"), ("\u0301", " \u0301"),
                     ("a\u0300", "à"), ("１", "1"), ("…", "..."), ("\x00", "")][:-1])


def unigram(**kw):
    t = Tokenizer(models.Unigram())
    t.normalizer = kw.pop("normalizer", None) or normalizers.NFKC()
    t.pre_tokenizer = kw.pop("pre", None) or pre_tokenizers.Metaspace()
    t.decoder = kw.pop("decoder", None) or decoders.Metaspace()
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=600, unk_token="<unk>", show_progress=False, **kw))
    return t


def xlmr():
    pre = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t = unigram(normalizer=normalizers.Sequence([normalizers.Precompiled(CHARSMAP), normalizers.Replace(Regex(" {2,}"), " ")]),
                pre=pre, special_tokens=["<s>", "<pad>", "</s>", "<unk>"])
    t.add_special_tokens([special("<mask>", lstrip=True)])
    t.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)])
    return t


def unigram_bytes():
    t = unigram(special_tokens=["<unk>", "<s>", "</s>"] + BYTES, normalizer=normalizers.Nmt())
    spec = json.loads(t.to_str())
    spec["model"]["byte_fallback"] = True
    spec["added_tokens"] = spec["added_tokens"][:3]
    spec["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    t = Tokenizer.from_str(json.dumps(spec))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t


def bert(lowercase=True, **kw):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase, **kw)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(cleanup=lowercase)
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=700, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return t


def words():
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.CharDelimiterSplit("_"), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous"),
        pre_tokenizers.Digits(True), pre_tokenizers.Split("x", "merged_with_next"), pre_tokenizers.Split("q", "removed", invert=False)])
    t.train_from_iterator(corpus(), trainers.WordLevelTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False))
    return t


KINDS = {
    "gpt2": gpt2, "llama3": llama3, "qwen2": qwen2, "falcon": falcon, "starcoder": starcoder, "spelled": spelled,
    "qwen35": lambda: chat_tokens(train_bpe(byte_level(QWEN35, normalizers.NFC()))),
    "gpt4o": lambda: chat_tokens(train_bpe(byte_level(GPT4O))),
    "tekken": lambda: chat_tokens(train_bpe(byte_level(TEKKEN))),
    "cl100k": lambda: train_bpe(byte_level(CL100K)),
    "deepseek": lambda: train_bpe(byte_level(splits=[r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK])),
    "odd": lambda: train_bpe(byte_level(splits=ODD)),
    "llama2": llama2, "gemma": gemma, "first": first, "suffix": no_fallback,
    "unigram": unigram, "xlmr": xlmr, "unigram_bytes": unigram_bytes,
    "bert": bert, "bert_cased": lambda: bert(False, strip_accents=False, handle_chinese_chars=False, clean_text=True), "words": words,
}


def digest(t, block):
    h = hashlib.sha256()
    for s in block:
        plain = t.encode(s, add_special_tokens=False).ids
        full = t.encode(s).ids
        for ids in (plain, full):
            h.update(struct.pack(f"<I{len(ids)}I", len(ids), *ids))
        for skip in (True, False):
            d = t.decode(full, skip_special_tokens=skip).encode()
            h.update(struct.pack("<I", len(d)) + d)
    return h.hexdigest()[:12]


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "show":  # show NAME INDEX: one string's answers
        t = Tokenizer.from_str(gzip.open(os.path.join(HERE, sys.argv[2] + ".json.gz"), "rt").read())
        s = list(texts.strings())[int(sys.argv[3])]
        e = t.encode(s, add_special_tokens=False)
        print(json.dumps({"text": s, "ids": e.ids, "tokens": e.tokens, "full": t.encode(s).ids, "decoded": t.decode(t.encode(s).ids, skip_special_tokens=True)}))
        return
    subprocess.run([sys.executable, os.path.join(HERE, "texts.py")], check=True)
    every = list(texts.strings())
    digests = {}
    for name, make in KINDS.items():
        t = make()
        with gzip.GzipFile(os.path.join(HERE, name + ".json.gz"), "wb", mtime=0) as f:
            f.write(json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")).encode())
        digests[name] = [digest(t, every[i:i + texts.BLOCK]) for i in range(0, len(every), texts.BLOCK)]
        print(name, t.get_vocab_size())
    with open(os.path.join(HERE, "digests.json"), "w") as f:
        json.dump(digests, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
