"""Makes the golden files of GGUF in this folder: what transformers computes of the dequantised weights.

    python gguf_fixtures.py [NAME...]

needs what fixtures.py needs, and the package gguf. As there, no weights are kept:
the bytes of every block are a hash of the tensor's name, with scales put in that give
numbers of a sensible size. The file is written by the package gguf, read and dequantised
by transformers with that package, and written again, byte for byte, by gguf_test.go.
"""

import copy
import json
import math
import os
import sys
import tempfile
import zlib

import gguf
import numpy as np
import torch
import transformers
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Q

from families import VOCAB
from fixtures import LAST, TOKENS, TOLERANCE, bits, encode, uniform, write

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, LAYERS = 256, 4, 2, 64, 3
PARTS = {"attn_q": "Q4_K", "attn_k": "Q4_K", "attn_v": "Q6_K", "attn_output": "Q4_K", "ffn_gate": "Q4_0", "ffn_up": "Q8_0", "ffn_down": "Q6_K"}
# Every type is in some layer of each file.
ORDER = ["Q4_K", "Q6_K", "Q8_0", "Q4_0", "BF16", "F16", "F32", "Q5_K", "Q3_K", "Q2_K", "IQ4_XS", "IQ4_NL", "Q5_1", "Q5_0", "Q4_1"]
# The scale of a block: the greatest number of it is about 1.
UNIT = {"Q8_0": 1 / 128, "Q4_0": 1 / 8, "Q4_1": 1 / 8, "Q5_0": 1 / 16, "Q5_1": 1 / 16, "Q2_K": 1 / 22.5, "Q3_K": 1 / 128, "Q4_K": 1 / 472.5, "Q5_K": 1 / 976.5,
        "Q6_K": 1 / 1024, "IQ4_NL": 1 / 128, "IQ4_XS": 1 / 4096}
# Where in a block its scale lies, if not at its beginning.
AT = {"Q6_K": 208, "Q3_K": 108, "Q2_K": 80}
# The second scale of a block, behind the first, as a multiple of it: it puts the middle of the codes at 0.
SECOND = {"Q4_1": -7.5, "Q5_1": -15.5, "Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}


def data(name, shape, kind, base, scale):
    """The bytes of a tensor, as rows of bytes."""
    count = int(np.prod(shape))
    if kind in ("F32", "F16", "BF16"):
        v = (np.float32(base) + np.float32(scale) * uniform(name, count)).reshape(shape)
        if kind == "BF16":
            return gguf.quants.quantize(v, Q.BF16)
        return v.astype({"F32": np.float32, "F16": np.float16}[kind])
    each, size = GGML_QUANT_SIZES[Q[kind]]
    n = count // each
    raw = bits(name, (n * size + 7) // 8).astype("<u8").view(np.uint8)[: n * size].reshape(n, size).copy()
    d = (np.float32(scale * UNIT[kind]) * (np.float32(1) + np.float32(0.25) * uniform(name + ".d", n))).astype(np.float16)
    half = d.reshape(n, 1).view(np.uint8)
    at = AT.get(kind, 0)
    raw[:, at : at + 2] = half
    if kind in SECOND:
        raw[:, at + 2 : at + 4] = (d.astype(np.float32) * np.float32(SECOND[kind])).astype(np.float16).reshape(n, 1).view(np.uint8)
    return raw.reshape(*shape[:-1], shape[-1] // each * size)


def values_of(arch, config):
    rope = config.get("rope_scaling") or {}
    v = {
        "general.architecture": ["string", arch],
        "general.name": ["string", "golden"],
        f"{arch}.vocab_size": ["uint32", config["vocab_size"]],
        f"{arch}.block_count": ["uint32", config["num_hidden_layers"]],
        f"{arch}.context_length": ["uint32", config["max_position_embeddings"]],
        f"{arch}.embedding_length": ["uint32", config["hidden_size"]],
        f"{arch}.feed_forward_length": ["uint32", config["intermediate_size"]],
        f"{arch}.attention.head_count": ["uint32", config["num_attention_heads"]],
        f"{arch}.attention.head_count_kv": ["uint32", config["num_key_value_heads"]],
        f"{arch}.attention.key_length": ["uint32", config["head_dim"]],
        f"{arch}.attention.value_length": ["uint32", config["head_dim"]],
        f"{arch}.attention.layer_norm_rms_epsilon": ["float32", config["rms_norm_eps"]],
        f"{arch}.rope.freq_base": ["float32", config["rope_theta"]],
    }
    if arch == "llama":
        v[f"{arch}.rope.dimension_count"] = ["uint32", config["head_dim"]]
    kind = rope.get("rope_type")
    if kind in ("linear", "yarn"):
        v[f"{arch}.rope.scaling.type"] = ["string", kind]
        v[f"{arch}.rope.scaling.factor"] = ["float32", rope["factor"]]
    if kind == "yarn":
        v[f"{arch}.rope.scaling.original_context_length"] = ["uint32", rope["original_max_position_embeddings"]]
    return v


def tensors_of(arch, config, turn):
    """[name, shape, type, base, scale], or the numbers themselves in place of the scale."""
    h, q, kv, inner = HIDDEN, config["num_attention_heads"] * config["head_dim"], config["num_key_value_heads"] * config["head_dim"], config["intermediate_size"]
    out = [["token_embd.weight", [VOCAB, h], ORDER[turn % 4], 0.0, 1.0], ["output_norm.weight", [h], "F32", 1.0, 0.3]]
    if not config.get("tie_word_embeddings"):
        out.append(["output.weight", [VOCAB, h], ORDER[(turn + 1) % 4], 0.0, 0.3])
    shapes = {"attn_q": [q, h], "attn_k": [kv, h], "attn_v": [kv, h], "attn_output": [h, q], "ffn_gate": [inner, h], "ffn_up": [inner, h], "ffn_down": [h, inner]}
    for layer in range(config["num_hidden_layers"]):
        p = f"blk.{layer}."
        out += [[p + "attn_norm.weight", [h], "F32", 1.0, 0.3], [p + "ffn_norm.weight", [h], "F32", 1.0, 0.3]]
        for i, (part, shape) in enumerate(shapes.items()):
            kind = PARTS[part] if layer == 0 and turn == 0 else ORDER[(i + 7 * layer + turn) % len(ORDER)]
            gain = {"attn_q": 2.5, "attn_k": 2.5}.get(part, 2.5)
            if arch == "qwen3":
                gain = 3.0
            out.append([f"{p}{part}.weight", shape, kind, 0.0, round(gain / shape[1] ** 0.5, 4)])
            if arch == "qwen2" and part in ("attn_q", "attn_k", "attn_v"):
                out.append([f"{p}{part}.bias", shape[:1], "F32", 0.0, 0.5])
        if arch == "qwen3":
            out += [[f"{p}{n}.weight", [config["head_dim"]], "F32", 1.8, 0.5] for n in ("attn_q_norm", "attn_k_norm")]
    rope = config.get("rope_scaling") or {}
    if rope.get("rope_type") == "llama3":
        out.append(["rope_freqs.weight", [config["head_dim"] // 2], "F32", llama3_factors(config, rope), 0.0])
    return sorted(out, key=lambda t: t[0])


def llama3_factors(config, rope):
    """What Llama 3's scaling divides each angle by, as converters write it down."""
    out = []
    for i in range(0, config["head_dim"], 2):
        wave = 2 * math.pi * config["rope_theta"] ** (i / config["head_dim"])
        low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
        high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
        if wave < high:
            out.append(1.0)
        elif wave > low:
            out.append(float(rope["factor"]))
        else:
            smooth = (rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
            out.append(float(np.float32(1 / ((1 - smooth) / rope["factor"] + smooth))))
    return out


def run(arch, config, values, tensors, ids):
    """The logits of transformers, and a checksum of all tensors' bytes."""
    check = 0
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "model.gguf")
        w = gguf.GGUFWriter(path, arch)
        for key, (kind, value) in values.items():
            if key != "general.architecture":
                getattr(w, "add_" + kind)(key, value)
        w.add_token_list([f"t{i}" for i in range(VOCAB)])
        for name, shape, kind, base, scale in tensors:
            raw = np.array(base, dtype=np.float32) if isinstance(base, list) else data(name, shape, kind, base, scale)
            check = zlib.crc32(raw.tobytes(), check)
            w.add_tensor(name, raw, raw_dtype=Q[kind])
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        cls = getattr(transformers, config["architectures"][0].replace("ForCausalLM", "Config"))
        made = cls(**{k: v for k, v in config.items() if k not in ("architectures", "model_type")})
        model = transformers.AutoModelForCausalLM.from_pretrained(tmp, gguf_file="model.gguf", config=made, dtype=torch.float32, attn_implementation="eager")
        assert model.config.head_dim == config["head_dim"] and bool(model.config.tie_word_embeddings) == bool(config.get("tie_word_embeddings"))
        model.eval()
        with torch.no_grad():
            out = model(torch.tensor([ids]), use_cache=False, output_attentions=True)
        peak = float(np.mean([a[:, :, 16:, :].max(-1).values.mean() for a in out.attentions]))
        return out.logits[0].float().numpy(), peak, check


def config_of(architecture, **more):
    return {
        "architectures": [architecture],
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": 256,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000.0,
        "tie_word_embeddings": False,
        **more,
    }


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
COMMON = {"rope.freq_base": {"rope_theta": 50.0}, "tied head": {"tie_word_embeddings": True}, "layer_norm_rms_epsilon": {"rms_norm_eps": 0.3}, "head_count_kv": {"num_key_value_heads": 1}, "key_length": {"head_dim": 128}}

FAMILIES = {
    "gguf_llama": ("llama", config_of("LlamaForCausalLM"), {**COMMON, "rope_freqs": {"rope_scaling": LLAMA3}, "linear": {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}}),
    "gguf_qwen2": ("qwen2", config_of("Qwen2ForCausalLM"), {**{k: v for k, v in COMMON.items() if k != "key_length"}, "yarn": {"rope_scaling": YARN}}),
    "gguf_qwen3": ("qwen3", config_of("Qwen3ForCausalLM"), {**COMMON, "yarn": {"rope_scaling": YARN}}),
}


def make(name, arch, config, variants, turn):
    ids = [int(v) for v in (uniform("ids", TOKENS) * 0.5 + 0.5) * VOCAB]
    values, tensors = values_of(arch, config), tensors_of(arch, config, turn)
    logits, peak, check = run(arch, config, values, tensors, ids)
    greatest = float(np.abs(logits).max())
    print(f"{name}: {len(tensors)} tensors, std {logits.std():.2f}, greatest {greatest:.2f}, attention peak {peak:.2f}")
    assert logits.std() >= 1 and peak >= 0.3
    made = []
    for title, patch in variants.items():
        changed = {**copy.deepcopy(config), **patch}
        v, t = values_of(arch, changed), tensors_of(arch, changed, turn)
        other, _, _ = run(arch, changed, v, t, ids)
        far = float(np.abs(other - logits).max() / greatest)
        print(f"    {title}: differs by {far:.3g} of the greatest")
        assert far >= 100 * TOLERANCE, f"{title} makes too little difference"
        made.append({"name": title, "values": {k: x for k, x in v.items() if values.get(k) != x}, "tensors": [x for x in t if x not in tensors],
                     "without": sorted({x[0] for x in tensors} - {x[0] for x in t}), "last": encode(other[-LAST:]), "difference": round(far, 4)})
    write(name, {"transformers": transformers.__version__, "values": values, "tensors": tensors, "checksum": check, "ids": ids, "logits": encode(logits), "variants": made})


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for turn, (name, (arch, config, variants)) in enumerate(FAMILIES.items()):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            make(name, arch, config, variants, turn)
