"""Records what llama.cpp makes of the strings of texts.py with vocabularies of GGUF.

    pip install gguf==0.19.0 sentencepiece==0.2.3 tokenizers==0.23.3
    python gguf_vectors.py    # needs what ../../model/testdata/gguf_llamacpp.py does

The byte-level vocabulary is that of gpt2.json.gz, once with each pre-tokenizer;
the other one is trained here by SentencePiece, once as it is and once as Gemma has its:
no space before the text, and user-defined tokens, which are cut out of it first.
gguf_spm.json.gz holds the former,
gguf.json a digest of the ids for each vocabulary and each hundred strings. Strings
are left out that are not UTF-8, or whose composed form is another: of these
llama.cpp makes what no tokenizer.json says.
"""

import gzip
import hashlib
import json
import os
import struct
import sys
import tempfile
import unicodedata

import gguf
import sentencepiece

import texts
from vectors import HERE, corpus

sys.path.append(os.path.join(HERE, "..", "..", "model", "testdata"))
import gguf_llamacpp

USER = ["\r\n\r\n", "  ", "   ", "    ", "<unused0>", "</code>"]
SPLITS = ["default", "gpt-2", "smollm", "llama-bpe", "qwen2"]


def plain(s):
    try:
        text = s.decode() if isinstance(s, bytes) else s
        text.encode()
    except UnicodeError:
        return None
    return text if unicodedata.is_normalized("NFC", text) and "\ufffd" not in text and "\0" not in text else None


def ids_of(values, strings):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "v.gguf")
        w = gguf.GGUFWriter(path, "llama")
        w.add_tokenizer_model(values["model"])
        w.add_token_list(values["tokens"])
        w.add_token_types(values["kinds"])
        if "pre" in values:
            w.add_tokenizer_pre(values["pre"])
            w.add_token_merges(values["merges"])
        if "space" in values:
            w.add_add_space_prefix(values["space"])
        if "scores" in values:
            w.add_token_scores(values["scores"])
            w.add_unk_token_id(0)
            w.add_bos_token_id(1)
            w.add_eos_token_id(2)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        return gguf_llamacpp.tokens(path, strings)


def digests(answers, blocks):
    out, at = [], 0
    for block in blocks:
        h = hashlib.sha256()
        for ids in answers[at : at + len(block)]:
            h.update(struct.pack(f"<I{len(ids)}I", len(ids), *ids))
        at += len(block)
        out.append(h.hexdigest()[:12])
    return out


def byte_level():
    t = json.load(gzip.open(os.path.join(HERE, "gpt2.json.gz"), "rt"))
    vocab = dict(t["model"]["vocab"])
    added = {a["content"]: a["special"] for a in t["added_tokens"]}
    for a in t["added_tokens"]:
        vocab[a["content"]] = a["id"]
    tokens = sorted(vocab, key=vocab.get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]]
    return {"model": "gpt2", "tokens": tokens, "kinds": [(3 if added[x] else 4) if x in added else 1 for x in tokens], "merges": merges}


def pieces():
    with tempfile.TemporaryDirectory() as tmp:
        name = os.path.join(tmp, "spm")
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=corpus(), model_prefix=name, model_type="bpe", vocab_size=1200, byte_fallback=True,
                                                 normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.98, num_threads=1, minloglevel=2)
        sp = sentencepiece.SentencePieceProcessor(model_file=name + ".model")
        n = sp.vocab_size()
        kind = lambda i: 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1
        return sp, {"model": "llama", "tokens": [sp.id_to_piece(i) for i in range(n)], "kinds": [kind(i) for i in range(n)], "scores": [sp.get_score(i) for i in range(n)]}


def gemma(spm):
    return {"model": "llama", "tokens": spm["tokens"] + USER, "kinds": spm["kinds"] + [4] * len(USER), "scores": spm["scores"] + [-1000.0] * len(USER), "space": False}


def main():
    every = list(texts.strings())
    blocks = [[p for p in map(plain, every[i : i + 100]) if p is not None] for i in range(0, len(every), 100)]
    strings = [s for b in blocks for s in b]
    print(len(strings), "of", len(every), "strings")
    out = {}
    bpe = byte_level()
    for pre in SPLITS:
        out[pre] = digests(ids_of({**bpe, "pre": pre}, strings), blocks)
    sp, spm = pieces()
    answers = ids_of(spm, strings)
    same = sum(sp.encode(s) == a for s, a in zip(strings, answers))
    print("SentencePiece gives the same for", same)
    out["spm"] = digests(answers, blocks)
    out["gemma"] = digests(ids_of(gemma(spm), strings), blocks)
    with open(os.path.join(HERE, "gguf.json"), "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")
    with open(os.path.join(HERE, "gguf_spm.json.gz"), "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0) as z:
        z.write(json.dumps({k: spm[k] for k in ("tokens", "kinds", "scores")}, ensure_ascii=False).encode())


if __name__ == "__main__":
    main()
