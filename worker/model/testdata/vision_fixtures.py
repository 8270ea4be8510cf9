"""Makes the golden files of models that see: what transformers computes.

    python vision_fixtures.py [NAME...]

needs what fixtures.py needs. A file holds the configuration and tensors as there, the ids
of a prompt with two pictures between words, the grids of the pictures, whose features are
formulas too, the positions of all tokens, the rows that the tower gives, and the logits of
all positions. The variants change one setting of the text's or of the tower's.
"""

import copy
import os
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

from families import DELTA, HYBRID as DELTA_SCALES
from fixtures import LAST, TOLERANCE, encode, numbers, tensors_of, uniform, write, write_config

START, END, VIDEO, IMAGE = 68, 69, 71, 70
GRIDS = [[1, 10, 6], [1, 4, 8]]  # windows of 2 by 2 rows do not divide the first


def config_of(architecture, model_type, vision):
    return {
        "architectures": [architecture], "model_type": model_type, "vocab_size": 72, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False, "torch_dtype": "float32",
        "image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START, "vision_end_token_id": END, "vision_config": vision,
    }


def nested(architecture, model_type, vision, text, **more):
    """A configuration whose text stands in text_config."""
    fields = {"vocab_size": 72, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
              "hidden_act": "silu", "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False, **text}
    return {"architectures": [architecture], "model_type": model_type, "text_config": fields, "vision_config": vision, "tie_word_embeddings": False, "torch_dtype": "float32",
            "image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START, "vision_end_token_id": END, **more}


def turned(*section, theta=10000.0, **more):
    """rope_parameters with pairs for time, line and column."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, "mrope_section": list(section), **more}}


SMALL = {"depth": 3, "num_heads": 2, "in_channels": 3, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2}
FAMILIES = {
    "qwen2_vl": {
        "config": config_of("Qwen2VLForConditionalGeneration", "qwen2_vl", {"model_type": "qwen2_vl", "embed_dim": 32, "hidden_size": 64, "mlp_ratio": 2, **SMALL}),
        "variants": {
            "rope_theta": {"rope_theta": 500.0},
            "mrope_section": {"rope_scaling": {"type": "mrope", "mrope_section": [4, 2, 2]}},
            "num_heads of the tower": {"vision_config": {"num_heads": 4}},
            "hidden_act of the tower": {"vision_config": {"hidden_act": "silu"}},
            "mlp_ratio": {"vision_config": {"mlp_ratio": 3}},
            "depth": {"vision_config": {"depth": 2}},
        },
    },
    "qwen2_5_vl": {
        "config": config_of("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl",
                            {"model_type": "qwen2_5_vl", "hidden_size": 32, "intermediate_size": 40, "out_hidden_size": 64, "window_size": 16, "fullatt_block_indexes": [1], **SMALL}),
        "variants": {
            "mrope_section": {"rope_scaling": {"type": "mrope", "mrope_section": [4, 2, 2]}},
            "window_size": {"vision_config": {"window_size": 24}},
            "fullatt_block_indexes": {"vision_config": {"fullatt_block_indexes": [0, 2]}},
            "intermediate_size of the tower": {"vision_config": {"intermediate_size": 24}},
        },
    },
}
DEEP = {"hidden_size": 32, "intermediate_size": 40, "out_hidden_size": 64, "num_position_embeddings": 25, **SMALL}
QWEN3 = {"head_dim": 16, **turned(4, 2, 2, theta=100.0, mrope_interleaved=True)}
HYBRID = {"head_dim": 24, "num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention"] * 2, **DELTA, **turned(2, 2, 2, theta=30.0, partial_rotary_factor=0.5, mrope_interleaved=True)}
FAMILIES |= {
    "qwen3_vl": {
        "config": nested("Qwen3VLForConditionalGeneration", "qwen3_vl", {"model_type": "qwen3_vl_vision", "deepstack_visual_indexes": [0, 2], **DEEP}, {"model_type": "qwen3_vl_text", **QWEN3}),
        "variants": {
            "rope_theta": {"text_config": turned(4, 2, 2)},
            "mrope_section": {"text_config": turned(6, 1, 1, theta=100.0)},
            "num_heads of the tower": {"vision_config": {"num_heads": 4}},
            "hidden_act of the tower": {"vision_config": {"hidden_act": "silu"}},
            "num_position_embeddings": {"vision_config": {"num_position_embeddings": 36}},
            "deepstack_visual_indexes": {"vision_config": {"deepstack_visual_indexes": [1, 2]}},
            "deepstack_visual_indexes in another order": {"vision_config": {"deepstack_visual_indexes": [2, 0]}},
            "one of deepstack_visual_indexes": {"vision_config": {"deepstack_visual_indexes": [1]}},
        },
    },
    "qwen3_vl_moe": {
        "config": nested("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", {"model_type": "qwen3_vl_moe_vision", "deepstack_visual_indexes": [0], **DEEP},
                         {"model_type": "qwen3_vl_moe_text", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1, "mlp_only_layers": [1], **QWEN3}),
        "transposed_experts": True,
        "variants": {
            "mrope_section": {"text_config": turned(6, 1, 1, theta=100.0)},
            "num_experts_per_tok": {"text_config": {"num_experts_per_tok": 1}},
            "mlp_only_layers": {"text_config": {"mlp_only_layers": []}},
            "deepstack_visual_indexes": {"vision_config": {"deepstack_visual_indexes": [2]}},
        },
    },
    "qwen3_5_vl": {
        "config": nested("Qwen3_5ForConditionalGeneration", "qwen3_5", {"model_type": "qwen3_5", **DEEP}, {"model_type": "qwen3_5_text", **HYBRID}),
        "norm_base": 0.0,
        "scales": DELTA_SCALES,
        "variants": {
            "mrope_section": {"text_config": turned(4, 1, 1, theta=30.0, partial_rotary_factor=0.5)},
            "layer_types": {"text_config": {"layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"]}},
            "num_position_embeddings": {"vision_config": {"num_position_embeddings": 36}},
        },
    },
    "qwen3_5_moe_vl": {
        "config": nested("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", {"model_type": "qwen3_5_moe", **DEEP},
                         {"model_type": "qwen3_5_moe_text", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 48, **HYBRID}),
        "norm_base": 0.0,
        "scales": DELTA_SCALES,
        "variants": {
            "mrope_section": {"text_config": turned(4, 1, 1, theta=30.0, partial_rotary_factor=0.5)},
            "num_heads of the tower": {"vision_config": {"num_heads": 4}},
        },
    },
}
GLM_EYES = {"model_type": "glm4v_vision", "hidden_size": 32, "intermediate_size": 40, "out_hidden_size": 64, "image_size": 20, "rms_norm_eps": 1e-5, **SMALL}
GLM = {"model_type": "glm4v_text", "head_dim": 16, "partial_rotary_factor": 0.5, "rope_theta": 30.0, "rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1]}}
GLM_VARIANTS = {
    "mrope_section": {"text_config": {"rope_scaling": {"rope_type": "default", "mrope_section": [1, 2, 1]}}},
    "partial_rotary_factor": {"text_config": {"partial_rotary_factor": 1.0, "rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]}}},
    "image_size": {"vision_config": {"image_size": 12}},
    "attention_bias of the tower": {"vision_config": {"attention_bias": True}},
    "intermediate_size of the tower": {"vision_config": {"intermediate_size": 24}},
    "rms_norm_eps of the tower": {"vision_config": {"rms_norm_eps": 0.5}},
}
FAMILIES |= {
    "glm4v": {
        "config": nested("Glm4vForConditionalGeneration", "glm4v", GLM_EYES, GLM),
        "variants": GLM_VARIANTS,
    },
    "glm46v": {
        "config": nested("Glm46VForConditionalGeneration", "glm46v", GLM_EYES, GLM),
        "variants": {"image_size": GLM_VARIANTS["image_size"]},
    },
    "glm4v_moe": {
        "config": nested("Glm4vMoeForConditionalGeneration", "glm4v_moe", {**GLM_EYES, "model_type": "glm4v_moe_vision"},
                         {**GLM, "model_type": "glm4v_moe_text", "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "first_k_dense_replace": 1,
                          "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0, "norm_topk_prob": True, "attention_bias": True}),
        "variants": {
            "mrope_section": GLM_VARIANTS["mrope_section"],
            "num_experts_per_tok": {"text_config": {"num_experts_per_tok": 1}},
        },
    },
}
FAMILY = {"auto": "AutoModelForImageTextToText", "scales": [("merger.mlp.2.weight", 0.0, 0.25), ("linear_fc2.weight", 0.0, 0.25), ("merger.down_proj.weight", 0.0, 0.4), ("attn.qkv.weight", 0.0, 0.5), (".norm1.weight", 1.0, 0.3), (".norm2.weight", 1.0, 0.3), ("merger.norm.weight", 1.0, 0.3)]}


def prompt():
    words = [3 + int(v) for v in (uniform("ids", 40) * 0.5 + 0.5) * 60]
    ids = words[:9]
    for grid, more in zip(GRIDS, (words[9:14], words[14:31])):
        ids += [START] + [IMAGE] * (grid[1] * grid[2] // 4) + [END] + more
    return ids


def run(config, tensors, ids):
    with tempfile.TemporaryDirectory() as tmp:
        write_config(config, tmp)
        save_file({t[0]: numbers(*t) for t in tensors}, os.path.join(tmp, "model.safetensors"), {"format": "pt"})
        model, info = transformers.AutoModelForImageTextToText.from_pretrained(tmp, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"], info
        model.eval()
        v = config["vision_config"]
        width = 3 * v["temporal_patch_size"] * v["patch_size"] ** 2
        features = np.concatenate([uniform(f"features {i}", g[1] * g[2] * width).reshape(-1, width) for i, g in enumerate(GRIDS)])
        pixels, grids, tokens = torch.tensor(features) * 2, torch.tensor(GRIDS), torch.tensor([ids])
        types = (tokens == IMAGE).int()
        with torch.no_grad():
            seen = model.model.get_image_features(pixels, grids)
            deep = [torch.cat(tuple(f)) for f in getattr(seen, "deepstack_features", None) or []]
            rows = torch.cat([torch.cat(tuple(seen if isinstance(seen, (tuple, list)) else seen.pooler_output)), *deep], dim=1)
            positions, delta = model.model.get_rope_index(tokens, types, image_grid_thw=grids)
            out = model(tokens, pixel_values=pixels, image_grid_thw=grids, mm_token_type_ids=types, use_cache=False)
        return out.logits[0].numpy(), rows.numpy(), positions[:, 0].tolist(), int(delta)


def make(name, family):
    config, ids = family["config"], prompt()
    family = {**FAMILY, **family, "scales": FAMILY["scales"] + family.get("scales", [])}
    tensors = tensors_of(config, family)
    logits, rows, positions, delta = run(config, tensors, ids)
    greatest = float(np.abs(logits).max())
    print(f"{name}: {len(tensors)} tensors, {len(ids)} tokens, std {logits.std():.2f}, greatest {greatest:.2f}, rows up to {np.abs(rows).max():.2f}")
    assert logits.std() >= 1, "the logits are too flat to tell anything"
    variants = []
    for title, patch in family["variants"].items():
        changed = copy.deepcopy(config)
        for key, value in patch.items():
            changed[key].update(value) if key in ("vision_config", "text_config") else changed.update({key: value})
        wanted = tensors_of(changed, family)
        extra = [t for t in wanted if t not in tensors]
        without = sorted({t[0] for t in tensors} - {t[0] for t in wanted})
        other = run(changed, wanted, ids)[0]
        far = float(np.abs(other - logits).max() / greatest)
        print(f"    {title}: differs by {far:.3g} of the greatest")
        assert far >= 100 * TOLERANCE, f"{title} makes too little difference"
        variants.append({"name": title, "patch": patch, "tensors": extra, "without": without, "last": encode(other[-LAST:]), "difference": far})
    write(name, {"transformers": transformers.__version__, "config": config, "tensors": tensors, "ids": ids, "grids": GRIDS, "positions": positions, "delta": delta,
                 "rows": encode(rows), "logits": encode(logits), "variants": variants})


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for name in sys.argv[1:] or FAMILIES:
        make(name, FAMILIES[name])
