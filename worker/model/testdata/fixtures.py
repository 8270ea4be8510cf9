"""Makes the golden files of this folder: what transformers computes.

    python fixtures.py [NAME...]

needs torch, transformers, accelerate, safetensors and numpy (CPU); the version of transformers
that was used stands in each file. Go alone runs the tests.

No weights are kept. Each number of a weight is a hash of the tensor's name and
of its index, made alike here and in fixture_test.go, and scaled so that the
logits have a standard deviation above 1 and attention is peaked: with the usual
initialisation, a wrong rope_theta moves the logits by a thousandth and a
missing soft cap by nothing.

A file holds the configuration, the tensors' names and scales, the token ids,
and the logits of all positions. Beside them stand variants: the configuration
with one setting changed, the logits of the last positions, and how far they
are from those of the configuration unchanged. That must be at least 100 times
the tolerance of the test, or the test would not see the setting at all.
"""

import base64
import copy
import json
import os
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.numpy import save_file

from families import FAMILIES
from quants import DEQUANTISE, dequantise

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = 80  # beyond every window, three pages of 16, and YaRN's original length
LAST = 3  # positions of a variant that are kept
TOLERANCE = 1e-4


def bits(name, count):
    """count words of 64 bits: splitmix64 over FNV-1a of the name."""
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    with np.errstate(over="ignore"):
        z = np.uint64(h) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(name, count):
    """count numbers in [-1, 1), exact in float32."""
    return (bits(name, count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)


def numbers(name, shape, base, scale, kind="F32"):
    """The numbers of a tensor, by the kind of its file.

    F32, F16  base + scale * uniform
    U8        base to base + scale - 1
    I32       words of random bits; ZEROS: words of nibbles from 4 to 7
    F8_E4M3   codes of 0.25 to 0.94 with either sign
    GROUPS    the group of each column, scale groups in turns (int32); SORTED: scale columns each (0: 128)
    SHAPE     base and scale themselves (int64)
    """
    count = int(np.prod(shape))
    z, u = bits(name, count).reshape(shape), uniform(name, count).reshape(shape)
    if kind == "U8":
        return (base + np.floor((u * np.float32(0.5) + np.float32(0.5)) * scale)).astype(np.uint8)
    if kind == "I32":
        return (z >> np.uint64(32)).astype(np.uint32).view(np.int32)
    if kind == "ZEROS":
        return ((z >> np.uint64(32) & np.uint64(0x33333333)) + np.uint64(0x44444444)).astype(np.uint32).view(np.int32)
    if kind == "F8_E4M3":
        return ((z >> np.uint64(32) & np.uint64(0x8F)) + np.uint64(0x28)).astype(np.uint8)
    if kind == "SORTED":
        return (np.arange(count) // (int(scale) or 128)).astype(np.int32)
    if kind == "SHAPE":
        return np.array([base, scale], dtype=np.int64)
    if kind == "GROUPS":
        return (np.arange(count) % scale).astype(np.int32)
    return (np.float32(base) + np.float32(scale) * u).astype({"F32": np.float32, "F16": np.float16}[kind])


def scale_of(name, shape, family):
    """The base and the scale of a tensor's numbers: base + scale * uniform."""
    for part, base, scale in family.get("scales", []):
        if part in name:
            return base, scale
    if name.endswith("bias") or len(shape) == 1 and "norm" not in name.lower():
        return 0.0, 0.5
    if len(shape) == 1:
        return family.get("norm_base", 1.0), 0.3
    if "embed" in name:
        return 0.0, 1.0
    # The columns are the last dimension, but for stacked experts of gpt-oss.
    columns = shape[-2] if family.get("transposed_experts") and ".experts." in name else shape[-1]
    gain = 2.0
    if "q_proj" in name or "q_b_proj" in name or "k_proj" in name or ".query." in name or ".key." in name:
        gain = family.get("qk_gain", 3.0)
    if "lm_head" in name or "gate.weight" in name or "router" in name:
        gain = 3.0
    return 0.0, round(gain / columns**0.5, 4)


def tensors_of(config, family):
    """Names and shapes as a checkpoint of this configuration has them."""
    with tempfile.TemporaryDirectory() as tmp:
        write_config(config, tmp)
        cls = getattr(transformers, family.get("auto", "AutoModelForCausalLM"))
        model = cls.from_config(transformers.AutoConfig.from_pretrained(tmp))
        model.save_pretrained(os.path.join(tmp, "saved"))
        out = []
        for file in sorted(os.listdir(os.path.join(tmp, "saved"))):
            if file.endswith(".safetensors"):
                with safe_open(os.path.join(tmp, "saved", file), "np") as f:
                    for name in f.keys():
                        shape = list(f.get_slice(name).get_shape())
                        if not any(part in name for part in family.get("ignore", [])):
                            out.append([name, shape, *scale_of(name, shape, family)])
        return sorted(out)


def write_config(config, folder):
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)


def run(config, tensors, ids, family):
    """The output of transformers for these weights, in float32."""
    with tempfile.TemporaryDirectory() as tmp:
        write_config(config, tmp)
        weights = {t[0]: numbers(*t) for t in tensors}
        if config.get("quantization_config", {}).get("quant_method") in DEQUANTISE:
            # transformers runs these on other machines only: the weights are
            # worked out here, from the definition of their layout.
            config = {k: v for k, v in config.items() if k != "quantization_config"}
            write_config(config, tmp)
            weights = dequantise(weights)
        save_file(weights, os.path.join(tmp, "model.safetensors"), {"format": "pt"})
        cls = getattr(transformers, family.get("auto", "AutoModelForCausalLM"))
        model, info = cls.from_pretrained(tmp, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        missing = [k for k in info["missing_keys"] if not any(part in k for part in family.get("ignore", []))]
        assert not missing, missing
        model.eval()
        with torch.no_grad():
            out = model(torch.tensor([ids]), use_cache=False, output_attentions=family.get("attentions", True))
        peak = 0.0
        if family.get("attentions", True):
            peak = float(np.mean([a[:, :, 16:, :].max(-1).values.mean() for a in out.attentions if a is not None]))
        return out.logits[0].float().numpy(), peak


def pooled(config, tensors, sequences, family, how):
    """One row a sequence: pooled by definition, or a classifier's numbers."""
    with tempfile.TemporaryDirectory() as tmp:
        write_config(config, tmp)
        save_file({t[0]: numbers(*t) for t in tensors}, os.path.join(tmp, "model.safetensors"), {"format": "pt"})
        cls = getattr(transformers, family["auto"])
        model, info = cls.from_pretrained(tmp, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        missing = [k for k in info["missing_keys"] if "pooler" not in k]
        assert not missing, missing
        model.eval()
        rows = []
        for s in sequences:
            more = {"token_type_ids": torch.tensor([s["types"]])} if any(s["types"]) else {}
            with torch.no_grad():
                out = model(torch.tensor([s["ids"]]), **more)
            if family["auto"] == "AutoModelForSequenceClassification":
                rows.append(out.logits[0].numpy())
                continue
            h = out.last_hidden_state[0].numpy().astype(np.float64)
            v = {"cls": h[0], "mean": h.mean(0), "lasttoken": h[-1]}[how["mode"]]
            rows.append((v / np.linalg.norm(v) if how["normalise"] else v).astype(np.float32))
        return np.stack(rows)


def sentence_transformers(how):
    """The files by which sentence-transformers describes a way of pooling."""
    types = ["Transformer", "Pooling"] + (["Normalize"] if how["normalise"] else [])
    paths = ["", "1_Pooling", "2_Normalize"]
    names = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "lasttoken": "pooling_mode_lasttoken"}
    return {
        "modules.json": json.dumps([{"idx": i, "name": str(i), "path": p, "type": "sentence_transformers.models." + t} for i, (p, t) in enumerate(zip(paths, types))]),
        "1_Pooling/config.json": json.dumps({n: m == how["mode"] for m, n in names.items()}),
    }


def make_pooled(name, family):
    """The golden file of a model that embeds or scores."""
    config = family["config"]
    sequences = []
    for i, length in enumerate([5, 33, 64]):
        # Ids 0 and 1 are left out: no sequence has padding in it.
        ids = [2 + int(v) for v in (uniform(f"ids {i}", length) * 0.5 + 0.5) * (config["vocab_size"] - 2)]
        types = [int(family.get("segments", False) and t >= length // 2) for t in range(length)]
        sequences.append({"ids": ids, "types": types})
    default = family.get("pooling", {"mode": "cls", "normalise": True})
    tensors = stored_names(tensors_of(config, family), family)
    rows = pooled(config, tensors, sequences, family, default)
    greatest = float(np.abs(rows).max())
    print(f"{name}: {len(tensors)} tensors, {rows.shape[1]} columns, greatest {greatest:.2f}")
    variants = []
    for title, v in family["variants"].items():
        changed = copy.deepcopy(config)
        changed.update(v.get("patch", {}))
        wanted = stored_names(tensors_of(changed, family), family)
        extra = [t for t in wanted if t not in tensors]
        without = sorted({t[0] for t in tensors} - {t[0] for t in wanted})
        how = v.get("pooling", default)
        texts = padded(sequences, changed["pad_token_id"], v["padding"]) if "padding" in v else sequences
        other = pooled(changed, wanted, texts, family, how)
        far = float(np.abs(other - rows).max() / greatest) if other.shape == rows.shape else 1.0
        print(f"    {title}: differs by {far:.3g} of the greatest")
        assert far >= 100 * TOLERANCE, f"{title} makes too little difference"
        variants.append({"name": title, "patch": v.get("patch", {}), "tensors": extra, "without": without, "files": sentence_transformers(how) if "pooling" in v else None,
                         "sequences": texts if "padding" in v else None, "rows": encode(other)})
    files = sentence_transformers(default) if "pooling" in family else {}
    fixture = {"transformers": transformers.__version__, "config": config, "files": files, "tensors": tensors, "sequences": sequences, "rows": encode(rows), "variants": variants}
    write(name, fixture)


def padded(sequences, pad, positions):
    """The sequences with padding at some positions, which attention sees as any other token."""
    return [{**s, "ids": [pad if t in positions else i for t, i in enumerate(s["ids"])]} for s in sequences]


def stored_names(tensors, family):
    """The names under which checkpoints of the family are published."""
    drop, keep = family.get("drop", "nothing"), []
    for t in tensors:
        if not t[0].startswith("pooler."):
            keep.append([t[0].removeprefix(drop), *t[1:]])
    return sorted(keep)


def encode(a):
    return base64.b64encode(np.ascontiguousarray(a, dtype="<f4").tobytes()).decode()


def make(name, family):
    config = family["config"]
    vocab = config.get("text_config", config)["vocab_size"]
    ids = [int(v) for v in (uniform("ids", TOKENS) * 0.5 + 0.5) * vocab]
    tensors = tensors_of(config, family)
    logits, peak = run(config, tensors, ids, family)
    greatest = float(np.abs(logits).max())
    print(f"{name}: {len(tensors)} tensors, std {logits.std():.2f}, greatest {greatest:.2f}, attention peak {peak:.2f}")
    assert logits.std() >= 1, "the logits are too flat to tell anything"
    assert peak >= 0.3 or not family.get("attentions", True), "attention is too flat to tell anything"
    variants = []
    for title, patch in family["variants"].items():
        changed = copy.deepcopy(config)
        for key, value in patch.items():
            if isinstance(value, dict) and isinstance(changed.get(key), dict) and key == "text_config":
                changed[key].update(value)
            else:
                changed[key] = value
        if title in family.get("layouts", {}):
            wanted = family["layouts"][title](tensors)
        elif "quantization_config" in patch:
            wanted = family["stored"](changed, tensors)
        else:
            wanted = tensors_of(changed, family)
        extra = [t for t in wanted if t not in tensors]
        without = sorted({t[0] for t in tensors} - {t[0] for t in wanted})
        other, _ = run(changed, wanted, ids, family)
        far = float(np.abs(other - logits).max() / greatest)
        print(f"    {title}: differs by {far:.3g} of the greatest")
        assert far >= 100 * TOLERANCE, f"{title} makes too little difference"
        variants.append({"name": title, "patch": patch, "tensors": extra, "without": without, "last": encode(other[-LAST:]), "difference": round(far, 4)})
    fixture = {
        "transformers": transformers.__version__,
        "config": config,
        "tensors": tensors,
        "ids": ids,
        "logits": encode(logits),
        "variants": variants,
    }
    write(name, fixture)


def write(name, fixture):
    path = os.path.join(HERE, name + ".json")
    with open(path, "w") as f:
        json.dump(fixture, f, separators=(",", ":"))
        f.write("\n")
    size = os.path.getsize(path)
    assert size <= 64 * 1024, f"{name}: {size} bytes; at most 64 KiB"


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for name in sys.argv[1:] or FAMILIES:
        (make_pooled if "pooled" in FAMILIES[name] else make)(name, FAMILIES[name])
