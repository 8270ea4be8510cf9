"""Prints what sentence-transformers makes of the sentences on standard input (a JSON list):
the seconds it took (float64), the width (int32), and the vectors (float32)."""

import json
import struct
import sys
import time

import numpy as np
from sentence_transformers import SentenceTransformer

sentences = json.load(sys.stdin)
model = SentenceTransformer(sys.argv[1], device="cpu", local_files_only=True)
began = time.time()
rows = np.asarray(model.encode(sentences, batch_size=50, show_progress_bar=False), dtype="<f4")
sys.stdout.buffer.write(struct.pack("<di", time.time() - began, rows.shape[1]) + rows.tobytes())
