"""Prints the checksums of TestBlocks: the float32 that the package gguf makes of the same bytes.

    python gguf_checksums.py

The bytes are splitmix64 over FNV-1a of "x"; the high byte of each scale of half precision
is made a small number.
"""

import zlib

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Q

# Where in a block the high bytes of its scales lie.
SCALES = {"Q8_0": [1], "Q4_0": [1], "Q4_1": [1, 3], "Q5_0": [1], "Q5_1": [1, 3], "Q2_K": [81, 83], "Q3_K": [109], "Q4_K": [1, 3], "Q5_K": [1, 3], "Q6_K": [209],
          "IQ4_NL": [1], "IQ4_XS": [1]}
BLOCKS = 64


def splitmix(count):
    z = np.uint64(0xAF63F54C86021707) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


for name, offsets in SCALES.items():
    _, size = GGML_QUANT_SIZES[Q[name]]
    raw = splitmix((BLOCKS * size + 7) // 8).astype("<u8").view(np.uint8)[: BLOCKS * size].reshape(BLOCKS, size).copy()
    raw[:, offsets] = raw[:, offsets] & 0x83 | 0x2C
    print(name, hex(zlib.crc32(gguf.quants.dequantize(raw, Q[name]).astype("<f4").tobytes())))
