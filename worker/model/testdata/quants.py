"""Checkpoints that are quantised: the tensors they have, and what these mean."""

import numpy as np

GROUP = 128


def linears(tensors):
    """The linears of the layers, and all other tensors."""
    inside = [t for t in tensors if ".layers." in t[0] and t[0].endswith("proj.weight")]
    return inside, [t for t in tensors if t not in inside]


def group_of(q):
    """The columns that share a scale, of four-bit codes."""
    for g in q.get("config_groups", {}).values():
        q = g["weights"]
    return q.get("group_size") or GROUP


def stored(config, tensors):
    """The tensors of the same model as a quantised checkpoint has them."""
    q = config["quantization_config"]
    inside, out = linears(tensors)
    for name, (rows, columns), _, scale in inside:
        size = group_of(q)
        base, groups = name.removesuffix(".weight"), columns // size
        small = scale / 4.5  # codes are up to 8 from their zero point
        method = q["quant_method"]
        if method == "gptq":
            out += [
                [base + ".qweight", [columns // 8, rows], 0, 0, "I32"],
                [base + ".qzeros", [groups, rows // 8], 0, 0, "ZEROS"],
                [base + ".scales", [groups, rows], small, small / 4, "F16"],
                [base + ".g_idx", [columns], 0, groups if q["desc_act"] else size % GROUP, "GROUPS" if q["desc_act"] else "SORTED"],
            ]
        elif method == "awq":
            out += [
                [base + ".qweight", [columns, rows // 8], 0, 0, "I32"],
                [base + ".qzeros", [groups, rows // 8], 0, 0, "ZEROS"],
                [base + ".scales", [groups, rows], small, small / 4, "F16"],
            ]
        elif method == "fp8":
            o, i = q["weight_block_size"]
            out += [
                [name, [rows, columns], 0, 0, "F8_E4M3"],
                [base + ".weight_scale_inv", [-(-rows // o), -(-columns // i)], scale, scale / 4],
            ]
        elif q["format"] == "float-quantized":
            strategy = q["config_groups"]["group_0"]["weights"]["strategy"]
            out += [
                [name, [rows, columns], 0, 0, "F8_E4M3"],
                [base + ".weight_scale", [rows, 1] if strategy == "channel" else [1], scale, scale / 4],
            ]
        else:
            out += [
                [base + ".weight_packed", [rows, columns // 8], 0, 0, "I32"],
                [base + ".weight_scale", [rows, groups], small, small / 4, "F16"],
                [base + ".weight_shape", [2], rows, columns, "SHAPE"],
            ]
    return sorted(out)


DEQUANTISE = ("gptq", "awq", "fp8", "compressed-tensors")

# The output column of each nibble of an AWQ word, from the lowest on.
AWQ = [0, 2, 4, 6, 1, 3, 5, 7]


def nibbles(words):
    """(..., n) words to (..., n, 8) codes, the lowest nibble first."""
    return words.view(np.uint32)[..., None] >> (np.arange(8, dtype=np.uint32) * 4) & 15


def dequantise(weights):
    """The weights of the checkpoint as plain float32, by the definition of each layout."""
    out = {}
    for name, w in weights.items():
        base = name.rsplit(".", 1)[0]
        if name.endswith(".qweight"):
            scales = weights[base + ".scales"].astype(np.float32)  # (groups, rows)
            if base + ".g_idx" in weights:  # GPTQ: words run down the columns, zeros are stored less one
                codes = nibbles(w).transpose(0, 2, 1).reshape(-1, w.shape[1])  # (columns, rows)
                zeros = nibbles(weights[base + ".qzeros"]).reshape(scales.shape) + 1
                group = weights[base + ".g_idx"]
            else:  # AWQ: words run along the rows, in an order of their own
                inverse = np.argsort(AWQ)
                codes = nibbles(w)[..., inverse].reshape(w.shape[0], -1)
                zeros = nibbles(weights[base + ".qzeros"])[..., inverse].reshape(scales.shape)
                group = np.arange(w.shape[0]) // (w.shape[0] // scales.shape[0])
            out[base + ".weight"] = np.ascontiguousarray(((codes.astype(np.int32) - zeros[group].astype(np.int32)) * scales[group]).T.astype(np.float32))
        elif name.endswith(".weight_packed"):  # compressed-tensors: codes plus 8, along the columns
            codes = nibbles(w).reshape(w.shape[0], -1).astype(np.float32) - 8
            scales = weights[base + ".weight_scale"].astype(np.float32)
            out[base + ".weight"] = codes * np.repeat(scales, codes.shape[1] // scales.shape[1], axis=1)
        elif name.endswith(".weight") and w.dtype == np.uint8:
            if base + ".weight_scale_inv" in weights:
                s = weights[base + ".weight_scale_inv"]
                s = np.repeat(np.repeat(s, GROUP, axis=0), GROUP, axis=1)[: w.shape[0], : w.shape[1]]
            else:
                s = weights[base + ".weight_scale"]
            out[name] = e4m3(w) * s
        elif not name.endswith((".scales", ".qzeros", ".g_idx", ".weight_scale", ".weight_scale_inv", ".weight_shape")):
            out[name] = w
    return out


def e4m3(codes):
    """Codes of normal numbers: sign, four bits of exponent plus 7, three of mantissa."""
    sign = np.where(codes & 0x80, -1, 1).astype(np.float32)
    return sign * np.float32(2.0) ** ((codes >> 3 & 15).astype(np.int32) - 7) * (1 + (codes & 7).astype(np.float32) / 8)
