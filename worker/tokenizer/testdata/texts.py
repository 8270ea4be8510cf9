"""The 10,000 test strings. tokenizers_test.go makes the same ones: both draw
from parts.json with SplitMix64, so no string needs to be committed."""

import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 10_000
BLOCK = 100

# Pieces of text that tokenizers treat differently; hex:… stands for raw bytes, mostly not UTF-8.
PARTS = [
    " ", " ", " ", "  ", "   ", "        ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n ", "\u00a0", "\u3000", "\u2028", "\u0085", "\u200b", "\x0b\x0c",
    "the", "The", "THE", "of", "and", "engine", "Engines", "round", "house", "roundhouse", "locomotive", "turntable", "steam", "stall", "ing", "ed", "tion",
    "a", "b", "I", "x", "Q", "don't", "I'M", "we'll", "they've", "it's", "'s", "'S", "'LL", "'re", "’s", "o'clock", "rock'n'roll",
    "HelloWorld", "camelCaseWord", "snake_case_word", "iPhone", "HTTPServer", "kB", "3D", "x86_64", "v1.2.3",
    "é", "e\u0301", "ñ", "ö", "Å", "A\u030a", "ß", "İ", "ı", "ǅ", "ﬁ", "½", "²", "①", "Ⅷ", "ª", "ﬀ", "ſ", "K", "Ω", "ﷺ", "㌔", "\u0301", "\u0308\u0301", "a\u0300\u0316b",
    "Straße", "naïve", "Grüße", "Ångström", "ΑΣ", "Привет", "мир", "Ελληνικά", "שלום", "مرحبا", "हिन्दी", "नमस्ते", "ไทยครับ", "தமிழ்", "한국어", "각", "\u1100\u1161\u11a8",
    "你好", "世界", "火车", "機関車", "かな", "カタカナ", "ー", "。", "，", "「引用」", "！", "？", "ｆｕｌｌ", "１２３", "〇", "\U00020000", "\U0002b821", "龥",
    "🚂", "🚂🚃", "👩‍👩‍👧", "👍🏽", "🇩🇪", "❤️", "☃", "\u200d", "\ufe0f", "\U0001f9ff",
    "0", "1", "7", "12", "123", "1234", "1234567", "3.14", "1,000", "-5", "1e-7", "0x1F", "٣٤", "१२", "100%", "$5", "€9",
    ".", ",", "!", "?", "...", "…", "-", "--", "—", "_", "/", "//", "\\", "|", "||", "&&", "!=", "==", "=>", "->", ":=", "<", ">", "</", "/>", "(", ")", "[]", "{}", "{", "}", "#", "@", "^", "~", "`", "```", "\"", "'", "%", "+", "++", "*", "**", "§", "°", "™", "∑", "≤",
    "def f(x):\n    return x + 1\n", "if (a != b) { c(); }", "for i in range(10):\n\tprint(i)", "<div class=\"a\">", "https://example.org/a?b=c&d=e#f", "foo@example.org", "SELECT * FROM t;", "x = [1, 2, 3];\n", "// note\n", "/* c */", "\\n", "\\u00e9",
    "aaaaaaaaaaaaaaaaaaaa", "ababababababab", "------------------------", "================", "!!!!!!!!!!!!", "0000000000000000", "    \n    \n    ",
    "<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|end|>", "<think>", "</think>", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "<mask>", " <mask>", "<mask> ", "<0x41>", "<0xE4>", "▁", "▁the", "Ġ", "##ing", "</w>", "word", "wordy", "Word",
    "\x00", "\x01", "\x07", "\x1b[0m", "\x7f", "\u0080", "\u009f", "\u00ad", "\ufeff", "\ufffd", "\ue000", "\U0010ffff", "\u0378", "\u2060",
    "hex:ff", "hex:c3", "hex:e4bd", "hex:f09f9a", "hex:80", "hex:c0af", "hex:eda080", "hex:f4908080", "hex:e4bda0e5", "hex:fe",
]

MASK = (1 << 64) - 1


class SplitMix64:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def strings():
    raw = [bytes.fromhex(p[4:]) if p.startswith("hex:") else p.encode() for p in PARTS]
    for i in range(COUNT):
        r = SplitMix64(i)
        n = 1 + r.next() % 24
        if i % 100 == 99:
            n *= 20
        spaced = r.next() % 2 == 0  # every other string is mostly words with spaces
        out = b""
        for _ in range(n):
            out += raw[r.next() % len(raw)]
            if spaced and r.next() % 2 == 0:
                out += b" "
        yield out.decode("utf-8", errors="replace")


if __name__ == "__main__":
    with open(os.path.join(HERE, "parts.json"), "w") as f:
        json.dump(PARTS, f, ensure_ascii=True, indent=0)
        f.write("\n")
