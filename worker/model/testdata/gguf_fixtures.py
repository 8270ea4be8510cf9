"""Makes the golden files of GGUF in this folder: what transformers computes of the dequantised weights.

    python gguf_fixtures.py [NAME...]

needs what fixtures.py and gguf_llamacpp.py need, and the package gguf. As there, no weights
are kept: the bytes of every block are a hash of the tensor's name, with scales put in that
give numbers of a sensible size. The file is written by the package gguf, read and dequantised
by transformers with that package, and written again, byte for byte, by gguf_test.go. Where
transformers reads no such file, the dequantised tensors are put into its model here. What
llama.cpp computes of the same file, written as floats, must be the same: it shows that keys
and tensors mean what they are taken for.
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

import gguf_llamacpp
from families import VOCAB
from fixtures import LAST, TOKENS, TOLERANCE, bits, encode, uniform, write

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, LAYERS = 256, 4, 2, 64, 3
PARTS = {"attn_q": "Q4_K", "attn_k": "Q4_K", "attn_v": "Q6_K", "attn_output": "Q4_K", "ffn_gate": "Q4_0", "ffn_up": "Q8_0", "ffn_down": "Q6_K"}
# Every type is in some layer of each file.
ORDER = ["Q4_K", "Q6_K", "Q8_0", "Q4_0", "BF16", "F16", "F32", "Q5_K", "Q3_K", "Q2_K", "IQ4_XS", "IQ4_NL", "Q5_1", "Q5_0", "Q4_1"]
LLAMACPP = 1e-3  # of the greatest logit: how far llama.cpp may be from transformers
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


# Keys of some architectures, and the fields that they are made of.
KEYS = [("expert_count", "num_experts"), ("expert_count", "num_local_experts"), ("expert_used_count", "num_experts_per_tok"),
        ("expert_feed_forward_length", "moe_intermediate_size"), ("attention.sliding_window", "sliding_window"), ("rope.freq_base_swa", "rope_local_base_freq"),
        ("attention.sliding_window_pattern", "sliding_window_pattern"), ("final_logit_softcapping", "final_logit_softcapping")]


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
    for key, field in KEYS:
        if config.get(field) is not None:
            v[f"{arch}.{key}"] = ["uint32" if isinstance(config[field], int) else "float32", config[field]]
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
    count = config.get("num_experts") or config.get("num_local_experts")
    if count:
        inner = config.get("moe_intermediate_size", inner)
        shapes = {n: s for n, s in shapes.items() if not n.startswith("ffn_")}
        shapes |= {"ffn_gate_exps": [count, inner, h], "ffn_up_exps": [count, inner, h], "ffn_down_exps": [count, h, inner]}
    for layer in range(config["num_hidden_layers"]):
        p = f"blk.{layer}."
        if arch == "gemma3":
            out += [[f"{p}{n}.weight", [h], "F32", 1.0, 0.3] for n in ("post_attention_norm", "post_ffw_norm")]
        out += [[p + "attn_norm.weight", [h], "F32", 1.0, 0.3], [p + "ffn_norm.weight", [h], "F32", 1.0, 0.3]]
        if count:
            out.append([p + "ffn_gate_inp.weight", [count, h], "F32", 0.0, 0.3])
        for i, (part, shape) in enumerate(shapes.items()):
            kind = PARTS[part] if layer == 0 and turn == 0 else ORDER[(i + 7 * layer + turn) % len(ORDER)]
            if part == "ffn_up_exps" and layer != 1:  # as published; the two differ in one layer
                kind = out[-1][2]
            gain = {"attn_q": 2.5, "attn_k": 2.5}.get(part, 2.5)
            if arch in ("qwen3", "qwen3moe", "gemma3"):
                gain = 3.0
            out.append([f"{p}{part}.weight", shape, kind, 0.0, round(gain / shape[-1] ** 0.5, 4)])
            if arch == "qwen2" and part in ("attn_q", "attn_k", "attn_v"):
                out.append([f"{p}{part}.bias", shape[:1], "F32", 0.0, 0.5])
        if arch in ("qwen3", "qwen3moe", "gemma3"):
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


def write_file(path, arch, values, tensors, widen=False):
    """Writes a file, its tensors as they are or as floats, and returns a checksum of their bytes."""
    check = 0
    w = gguf.GGUFWriter(path, arch)
    for key, (kind, value) in values.items():
        if key != "general.architecture":
            getattr(w, "add_" + kind)(key, value)
    if widen:
        w.add_tokenizer_model("no_vocab")
    else:
        w.add_token_list([f"t{i}" for i in range(VOCAB)])
    for name, shape, kind, base, scale in tensors:
        raw = np.array(base, dtype=np.float32) if isinstance(base, list) else data(name, shape, kind, base, scale)
        check = zlib.crc32(raw.tobytes(), check)
        if widen:
            w.add_tensor(name, floats_of(raw, kind).reshape(shape))
        else:
            w.add_tensor(name, raw, raw_dtype=Q[kind])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return check


def floats_of(raw, kind):
    return raw.astype(np.float32) if kind in ("F32", "F16") else gguf.quants.dequantize(raw, Q[kind])


# Those whose files transformers does not read, or not as they are: what their parts are in its models.
MAPPED = {"MixtralForCausalLM": {}}
ALIKE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate_inp": "mlp.gate",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def mapped(arch, config, tensors):
    """The dequantised tensors as the state of a model of transformers."""
    parts = {**ALIKE, **MAPPED[config["architectures"][0]]}
    state, wide = {}, {}
    for name, shape, kind, base, scale in tensors:
        v = torch.from_numpy(floats_of(data(name, shape, kind, base, scale), kind).reshape(shape).copy())
        stem, suffix = name.rsplit(".", 1)
        layer = ""
        if stem.startswith("blk."):
            number, stem = stem.removeprefix("blk.").split(".")
            layer = f"model.layers.{number}."
        if arch == "llama" and stem in ("attn_q", "attn_k"):  # rows in pairs
            v = v.reshape(-1, config["head_dim"] // 2, 2, shape[-1]).swapaxes(1, 2).reshape(shape)
        if stem.endswith("_exps"):
            wide[layer, stem, suffix] = v
        else:
            state[layer + parts[stem] + "." + suffix] = v
    for layer in sorted({k[0] for k in wide}):
        state[layer + "mlp.experts.gate_up_proj"] = torch.cat([wide[layer, "ffn_gate_exps", "weight"], wide[layer, "ffn_up_exps", "weight"]], 1)
        state[layer + "mlp.experts.down_proj"] = wide[layer, "ffn_down_exps", "weight"]
    return state


def run(arch, config, values, tensors, ids):
    """The logits of transformers, and a checksum of all tensors' bytes."""
    with tempfile.TemporaryDirectory() as tmp:
        check = write_file(os.path.join(tmp, "model.gguf"), arch, values, tensors)
        cls = getattr(transformers, config["architectures"][0].replace("Gemma3For", "Gemma3TextFor").replace("ForCausalLM", "Config"))
        made = cls(**{k: v for k, v in config.items() if k not in ("architectures", "model_type")})
        if config["architectures"][0] in MAPPED:
            model = transformers.AutoModelForCausalLM.from_config(made, dtype=torch.float32, attn_implementation="eager")
            missing, unexpected = model.load_state_dict(mapped(arch, config, tensors), strict=False)
            assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
            model.tie_weights()
        else:
            model = transformers.AutoModelForCausalLM.from_pretrained(tmp, gguf_file="model.gguf", config=made, dtype=torch.float32, attn_implementation="eager")
        assert model.config.head_dim == config["head_dim"] and bool(model.config.tie_word_embeddings) == bool(config.get("tie_word_embeddings"))
        model.eval()
        with torch.no_grad():
            out = model(torch.tensor([ids]), use_cache=False, output_attentions=True)
        peak = float(np.mean([a[:, :, 16:, :].max(-1).values.mean() for a in out.attentions]))
        logits = out.logits[0].float().numpy()
        wide = os.path.join(tmp, "wide.gguf")
        write_file(wide, arch, values, tensors, widen=True)
        other = float(np.abs(gguf_llamacpp.logits(wide, ids, VOCAB) - logits).max() / np.abs(logits).max())
        print(f"    llama.cpp differs by {other:.2g} of the greatest")
        assert other <= LLAMACPP, "llama.cpp makes something else of the file"
        return logits, peak, check


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
FEW = {k: COMMON[k] for k in ("tied head", "key_length")}

FAMILIES = {
    "gguf_llama": ("llama", config_of("LlamaForCausalLM"), {**COMMON, "rope_freqs": {"rope_scaling": LLAMA3}, "linear": {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}}),
    "gguf_qwen2": ("qwen2", config_of("Qwen2ForCausalLM"), {**{k: v for k, v in COMMON.items() if k != "key_length"}, "yarn": {"rope_scaling": YARN}}),
    "gguf_qwen3": ("qwen3", config_of("Qwen3ForCausalLM"), {**COMMON, "yarn": {"rope_scaling": YARN}}),
    "gguf_qwen3_moe": ("qwen3moe", config_of("Qwen3MoeForCausalLM", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256, norm_topk_prob=True),
                       {**FEW, "expert_used_count": {"num_experts_per_tok": 3}, "expert_feed_forward_length": {"moe_intermediate_size": 512}}),
    "gguf_mixtral": ("llama", config_of("MixtralForCausalLM", num_local_experts=4, num_experts_per_tok=2, sliding_window=None), {**FEW, "expert_used_count": {"num_experts_per_tok": 3}}),
    "gguf_gemma3": ("gemma3", config_of("Gemma3ForCausalLM", num_hidden_layers=4, rope_theta=10000.0, rope_local_base_freq=500.0, sliding_window=24, sliding_window_pattern=3,
                                        query_pre_attn_scalar=64, hidden_activation="gelu_pytorch_tanh"),
                    {**COMMON, "rope.freq_base": {"rope_theta": 100.0}, "linear": {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}, "sliding_window": {"sliding_window": 20},
                     "rope.freq_base_swa": {"rope_local_base_freq": 50.0}, "sliding_window_pattern": {"sliding_window_pattern": 2},
                     "final_logit_softcapping": {"final_logit_softcapping": 5.0}, "key_length": {"head_dim": 128, "query_pre_attn_scalar": 128}}),
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
    write(name, {"transformers": transformers.__version__, "llama.cpp": gguf_llamacpp.RELEASE, "values": values, "tensors": tensors, "checksum": check, "ids": ids, "logits": encode(logits), "variants": made})


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for turn, (name, (arch, config, variants)) in enumerate(FAMILIES.items()):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            make(name, arch, config, variants, turn)
