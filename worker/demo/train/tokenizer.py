"""Trains the tokenizer: byte-level BPE with Qwen's pre-tokenizer, 1,536 tokens.

    python tokenizer.py      # writes tokenizer.json and tokenizer_config.json into ../model
"""

import json
import os
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import data

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCAB = 1536

# The pattern of the Qwen2 and Qwen3 tokenizers: digits stand alone, a word takes the space before it.
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")

CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


def corpus(seed=1, n=10000):
    """Samples, and all words in the three forms they occur in, so that most become one token."""
    r = random.Random(seed)
    for _ in range(n):
        kind = r.choice(["facts", "facts", "json", "copy", "sort", "reverse", "arithmetic", "count", "greeting"])
        q, a = data.sample(r, kind, data.Level(count_tokens=60))
        yield f"user\n{q}\nassistant\n{a}\nsystem\n{r.choice(data.SYSTEMS)}"
    words = data.WORDS + data.NAMES + data.CITIES + data.COLORS + data.FOODS + data.JOBS + data.PLACES + data.DAYS
    for _ in range(400):
        yield " ".join(r.sample(words, len(words)))


def train():
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
    ])
    tok.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=VOCAB - len(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=[], show_progress=False)
    tok.train_from_iterator(corpus(), trainer)
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    assert tok.get_vocab_size() == VOCAB, tok.get_vocab_size()
    return tok


def main():
    os.makedirs(MODEL, exist_ok=True)
    tok = train()
    tok.save(os.path.join(MODEL, "tokenizer.json"))
    first = VOCAB - len(SPECIAL)
    config = {
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(first + i): {"content": t, "lstrip": False, "normalized": False, "rstrip": False,
                             "single_word": False, "special": True} for i, t in enumerate(SPECIAL)},
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "bos_token": None,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 8192,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    with open(os.path.join(MODEL, "tokenizer_config.json"), "w") as f:
        json.dump(config, f, indent=2, ensure_ascii=False)
        f.write("\n")
    whole = [w for w in data.WORDS if len(tok.encode(" " + w).ids) == 1]
    bare = [w for w in data.WORDS if len(tok.encode(w).ids) == 1]
    print(f"{VOCAB} tokens; {len(whole)} of {len(data.WORDS)} words are one token after a space, {len(bare)} at a start")


if __name__ == "__main__":
    main()
