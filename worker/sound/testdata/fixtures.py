"""Makes the golden file of this folder: what transformers, vLLM and libsndfile do.

    python fixtures.py

needs numpy, torch, transformers, soundfile and vLLM's multimodal/audio.py; Go alone runs
the tests. The sound is a formula, which the test makes alike. The file holds log-mel
spectrograms, of long ones a few frames; where long sound is cut; and small files of each
kind, which libsndfile has written.
"""

import base64
import io
import json
import os

import numpy as np
import soundfile
import torch
import transformers
from transformers import WhisperFeatureExtractor
from vllm.multimodal.audio import split_audio

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = 16000


def sound(seconds, rate=RATE, seed=0):
    """A rising tone that comes and goes, clicks, and noise: samples of float32."""
    i = np.arange(int(seconds * rate), dtype=np.uint64)
    t = i.astype(np.float64) / rate
    z = (i + np.uint64(seed * 1000003)) * np.uint64(0x9E3779B97F4A7C15)
    noise = ((z ^ (z >> np.uint64(29))) >> np.uint64(40)).astype(np.float64) / 2**23 - 1
    tone = 0.4 * np.sin(2 * np.pi * (200 + 150 * t) * t) * (0.55 + 0.45 * np.sin(2 * np.pi * 0.7 * t))
    clicks = 0.3 * (i % np.uint64(rate // 3) < 8)
    return (tone + clicks + 0.02 * noise).astype(np.float32)


def encode(a):
    return base64.b64encode(np.ascontiguousarray(a, dtype="<f4").tobytes()).decode()


def mels():
    out = []
    for bands, chunk, seconds, every in ((80, 1, 1.0, 9), (128, 1, 0.43, 9), (80, 30, 7.3, 101), (128, 30, 31.0, 173)):
        x = WhisperFeatureExtractor(feature_size=bands, chunk_length=chunk)
        got = x(sound(seconds), sampling_rate=RATE, return_tensors="np")["input_features"][0]
        out.append({"bands": bands, "chunk": chunk, "seconds": seconds, "every": every, "frames": encode(got.T[::every])})
    return out


def cuts():
    out = []
    for seconds, longest in ((2.5, 1), (65.0, 30), (30.0, 30), (30.5, 30), (91.3, 30)):
        pieces = split_audio(sound(seconds, seed=1), RATE, longest, 1, 1600)
        out.append({"seconds": seconds, "longest": longest, "lengths": [len(p) for p in pieces]})
    return out


def files():
    out = []
    for name, rate, channels, kind, coding in (
        ("WAV of 8 bits", 8000, 1, "WAV", "PCM_U8"), ("WAV of 16 bits", 16000, 1, "WAV", "PCM_16"), ("WAV of 24 bits", 11025, 2, "WAV", "PCM_24"),
        ("WAV of 32 bits", 8000, 1, "WAV", "PCM_32"), ("WAV of floats", 8000, 1, "WAV", "FLOAT"), ("WAV of doubles", 8000, 1, "WAV", "DOUBLE"), ("WAV by A-law", 8000, 1, "WAV", "ALAW"),
        ("WAV by µ-law", 8000, 2, "WAV", "ULAW"), ("extensible WAV", 8000, 1, "WAVEX", "PCM_16"), ("FLAC of 16 bits", 16000, 1, "FLAC", "PCM_16"), ("FLAC of 24 bits, stereo", 8000, 2, "FLAC", "PCM_24"),
        ("MP3", 44100, 1, "MP3", "MPEG_LAYER_III"), ("MP3, stereo", 32000, 2, "MP3", "MPEG_LAYER_III"), ("MP3 of MPEG 2", 16000, 1, "MP3", "MPEG_LAYER_III"),
        ("Vorbis", 44100, 1, "OGG", "VORBIS"), ("Vorbis, stereo", 22050, 2, "OGG", "VORBIS"), ("Opus", 48000, 1, "OGG", "OPUS"), ("Opus, stereo", 16000, 2, "OGG", "OPUS"),
    ):
        seconds = 0.2
        data = np.repeat(sound(seconds, rate)[:, None], channels, axis=1)
        buf = io.BytesIO()
        soundfile.write(buf, data, rate, format=kind, subtype=coding)
        out.append({"name": name, "rate": rate, "seconds": seconds, "exact": kind in ("WAV", "WAVEX", "FLAC") and "LAW" not in coding and coding != "PCM_U8", "data": base64.b64encode(buf.getvalue()).decode()})
    return out


if __name__ == "__main__":
    torch.set_num_threads(1)
    with open(os.path.join(HERE, "golden.json"), "w") as f:
        json.dump({"transformers": transformers.__version__, "libsndfile": soundfile.__libsndfile_version__, "mels": mels(), "cuts": cuts(), "files": files()}, f, separators=(",", ":"))
        f.write("\n")
