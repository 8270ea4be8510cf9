"""The configurations of the golden files, in the form that checkpoints have.

Each is as small as it can be with everything different that could be mixed up:
heads, KV heads, widths and layers. "variants" are settings that must be seen.
"""

import quants

VOCAB = 72


def compressed(layout, bits, kind, strategy, **more):
    weights = {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": True, "dynamic": False, **more}
    return {"quant_method": "compressed-tensors", "format": layout, "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def decoder(architecture, model_type, **more):
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": VOCAB,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        **more,
    }


def encoder(architecture, model_type, **more):
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": VOCAB,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 80,
        "type_vocab_size": 2,
        "pad_token_id": 0,
        "torch_dtype": "float32",
        **more,
    }


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}



def together(tensors):
    """The same checkpoint with the experts of a layer in one tensor."""
    out = [t for t in tensors if ".experts." not in t[0]]
    for name, shape, base, scale in tensors:
        if name.endswith("experts.0.gate_proj.weight"):
            count = sum(t[0].startswith(name.split("0.gate_proj")[0]) for t in tensors) // 3
            out.append([name.replace("0.gate_proj.weight", "gate_up_proj"), [count, 2 * shape[0], shape[1]], base, scale])
            out.append([name.replace("0.gate_proj.weight", "down_proj"), [count, shape[1], shape[0]], base, scale])
    return sorted(out)


def mxfp4(config, tensors):
    """The tensors of gpt-oss with experts of 4 bits: blocks of 32 columns and their scales."""
    out = []
    for name, shape, base, scale in tensors:
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            count, columns, rows = shape  # stored the other way round
            out.append([name + "_blocks", [count, rows, columns // 32, 16], 0, 256, "U8"])
            out.append([name + "_scales", [count, rows, columns // 32], 121, 4, "U8"])
        else:
            out.append([name, shape, base, scale])
    return sorted(out)


DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 24, "linear_conv_kernel_dim": 4}
HYBRID = [("q_norm", 0.8, 0.5), ("k_norm", 0.8, 0.5), ("linear_attn.norm", 1.0, 0.3), ("A_log", 0.0, 1.0), ("dt_bias", -1.0, 1.0)]

DEEPYARN = {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707}

# Settings that all decoders of Llama's shape read.
COMMON = {
    "rope_theta": {"rope_theta": 500.0},
    "tie_word_embeddings": {"tie_word_embeddings": True},
    "rms_norm_eps": {"rms_norm_eps": 0.3},
    "num_key_value_heads": {"num_key_value_heads": 1},
}

FAMILIES = {
    "llama": {
        "config": decoder("LlamaForCausalLM", "llama", rope_theta=10000.0, rope_scaling=LLAMA3),
        "variants": {
            **COMMON,
            "rope default": {"rope_scaling": None},
            "rope linear": {"rope_scaling": {"type": "linear", "factor": 4.0}},
            "rope yarn": {"rope_scaling": YARN},
            # The base is that of the longest sequence, which is the one of the test.
            "rope dynamic": {"rope_scaling": {"type": "dynamic", "factor": 2.0}, "max_position_embeddings": 40},
            "rope llama3, another factor": {"rope_scaling": {**LLAMA3, "factor": 2.0}},
            "rope llama3, another original length": {"rope_scaling": {**LLAMA3, "original_max_position_embeddings": 64}},
            "rope_parameters of transformers 5": {"rope_scaling": None, "rope_parameters": {"rope_type": "default", "rope_theta": 300.0}},
            "attention_bias": {"attention_bias": True},
            "mlp_bias": {"mlp_bias": True},
            "head_dim": {"head_dim": 24},
        },
    },
    "qwen2": {
        "config": decoder("Qwen2ForCausalLM", "qwen2", rope_theta=1000.0, sliding_window=24, max_window_layers=2, use_sliding_window=True),
        "variants": {
            **COMMON,
            "no window": {"use_sliding_window": False},
            "sliding_window": {"sliding_window": 20},
            "max_window_layers": {"max_window_layers": 1},
            "rope yarn": {"rope_scaling": YARN},
        },
    },
    "qwen3": {
        "config": decoder("Qwen3ForCausalLM", "qwen3", rope_theta=1000.0, head_dim=24),
        "qk_gain": 3.0,
        "scales": [("q_norm", 1.8, 0.5), ("k_norm", 1.8, 0.5)],
        "variants": {
            **COMMON,
            "rope yarn": {"rope_scaling": YARN},
            "rope yarn, untruncated": {"rope_scaling": {**YARN, "truncate": False, "beta_fast": 8.0, "beta_slow": 2.0}},
            "rope yarn, attention_factor": {"rope_scaling": {**YARN, "attention_factor": 1.5}},
            "attention_bias": {"attention_bias": True},
            "window": {"use_sliding_window": True, "sliding_window": 24, "max_window_layers": 2},
            "head_dim": {"head_dim": 16},
        },
    },
    "mistral": {
        "config": decoder("MistralForCausalLM", "mistral", rope_theta=1000.0, sliding_window=24, head_dim=24),
        "variants": {
            **COMMON,
            "no window": {"sliding_window": None},
            "sliding_window": {"sliding_window": 23},
            "rope yarn": {"rope_scaling": YARN},
        },
    },
    "qwen3_moe": {
        "config": decoder("Qwen3MoeForCausalLM", "qwen3_moe", rope_theta=1000.0, head_dim=24, num_experts=6, num_experts_per_tok=2,
                          moe_intermediate_size=32, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[]),
        "scales": [("q_norm", 1.8, 0.5), ("k_norm", 1.8, 0.5)],
        "variants": {
            **COMMON,
            "norm_topk_prob": {"norm_topk_prob": False},
            "num_experts_per_tok": {"num_experts_per_tok": 3},
            "mlp_only_layers": {"mlp_only_layers": [1]},
            "decoder_sparse_step": {"decoder_sparse_step": 2},
            "window": {"use_sliding_window": True, "sliding_window": 24},
        },
    },
    "mixtral": {
        "config": decoder("MixtralForCausalLM", "mixtral", rope_theta=1000.0, num_local_experts=6, num_experts_per_tok=2, sliding_window=None),
        "variants": {
            **COMMON,
            "num_experts_per_tok": {"num_experts_per_tok": 3},
            "sliding_window": {"sliding_window": 24},
        },
    },
    "gemma3": {
        "config": decoder("Gemma3ForCausalLM", "gemma3_text", rope_theta=10000.0, rope_local_base_freq=500.0, sliding_window=24, sliding_window_pattern=3,
                          head_dim=24, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=16, tie_word_embeddings=True,
                          rope_scaling={"rope_type": "linear", "factor": 8.0}),
        "norm_base": 0.0,
        "scales": [("q_norm", 0.8, 0.5), ("k_norm", 0.8, 0.5)],
        "variants": {
            "rope_theta": {"rope_theta": 500.0},
            "rope_local_base_freq": {"rope_local_base_freq": 50.0},
            "rms_norm_eps": {"rms_norm_eps": 0.3},
            "num_key_value_heads": {"num_key_value_heads": 1},
            "sliding_window": {"sliding_window": 20},
            "sliding_window_pattern": {"sliding_window_pattern": 2},
            "layer_types": {"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]},
            "query_pre_attn_scalar": {"query_pre_attn_scalar": 24},
            "final_logit_softcapping": {"final_logit_softcapping": 5.0},
            "rope_scaling": {"rope_scaling": None},
            "rope_parameters of transformers 5": {
                "rope_scaling": None,
                "rope_parameters": {
                    "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 9000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                },
            },
        },
    },
    "glm4": {
        "config": decoder("Glm4ForCausalLM", "glm4", rope_theta=1000.0, head_dim=16, partial_rotary_factor=0.5, attention_bias=False),
        "variants": {
            **COMMON,
            "partial_rotary_factor": {"partial_rotary_factor": 1.0},
            "attention_bias": {"attention_bias": True},
            "rope yarn": {"rope_scaling": YARN},
        },
    },
    "glm": {
        "config": decoder("GlmForCausalLM", "glm", rope_theta=1000.0, head_dim=16, partial_rotary_factor=0.5, attention_bias=True),
        "variants": {
            **COMMON,
            "partial_rotary_factor": {"partial_rotary_factor": 1.0},
            "attention_bias": {"attention_bias": False},
        },
    },
    "seed_oss": {
        "config": decoder("SeedOssForCausalLM", "seed_oss", rope_theta=1000.0, head_dim=24, attention_bias=True, attention_out_bias=False, mlp_bias=False),
        "variants": {
            **COMMON,
            "attention_bias": {"attention_bias": False},
            "attention_out_bias": {"attention_out_bias": True},
            "mlp_bias": {"mlp_bias": True},
        },
    },
    "hunyuan": {
        "config": decoder("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", rope_theta=1000.0, head_dim=24, attention_bias=False,
                          rope_scaling={"type": "dynamic", "alpha": 50.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}),
        "scales": [("query_layernorm", 1.8, 0.5), ("key_layernorm", 1.8, 0.5)],
        "variants": {
            **COMMON,
            "rope default": {"rope_scaling": None},
            "alpha": {"rope_scaling": {"type": "dynamic", "alpha": 5.0, "factor": 1.0}},
            "attention_bias": {"attention_bias": True},
        },
    },
    "glm4_moe": {
        "config": decoder("Glm4MoeForCausalLM", "glm4_moe", rope_theta=1000.0, head_dim=16, partial_rotary_factor=0.5, attention_bias=True,
                          n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=1, first_k_dense_replace=1,
                          n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.5, use_qk_norm=True, num_nextn_predict_layers=0),
        "scales": [("q_norm", 1.8, 0.5), ("k_norm", 1.8, 0.5), ("e_score_correction_bias", 0.0, 0.4)],
        "variants": {
            **COMMON,
            "partial_rotary_factor": {"partial_rotary_factor": 1.0},
            "attention_bias": {"attention_bias": False},
            "use_qk_norm": {"use_qk_norm": False},
            "num_experts_per_tok": {"num_experts_per_tok": 3},
            "n_shared_experts": {"n_shared_experts": 2},
            "first_k_dense_replace": {"first_k_dense_replace": 2},
            "n_group": {"n_group": 3, "topk_group": 1},
            "norm_topk_prob": {"norm_topk_prob": False},
            "routed_scaling_factor": {"routed_scaling_factor": 1.0},
        },
    },
    "gpt_oss": {
        "config": decoder("GptOssForCausalLM", "gpt_oss", rope_theta=1000.0, head_dim=24, num_local_experts=6, num_experts_per_tok=2, attention_bias=True,
                          sliding_window=24, swiglu_limit=7.0, layer_types=["sliding_attention", "full_attention"] * 2,
                          rope_scaling={"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                                        "original_max_position_embeddings": 32}),
        "transposed_experts": True,
        "scales": [("sinks", 1.0, 2.0), ("router.bias", 0.0, 0.5), ("proj_bias", 0.0, 0.5)],
        "stored": mxfp4,
        "variants": {
            **COMMON,
            "mxfp4": {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}},
            "swiglu_limit": {"swiglu_limit": 1.0},
            "num_experts_per_tok": {"num_experts_per_tok": 3},
            "sliding_window": {"sliding_window": 20},
            "layer_types": {"layer_types": ["full_attention", "sliding_attention"] * 2},
            "truncate": {"rope_scaling": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 32}},
            "attention_bias": {"attention_bias": False},
        },
    },
    "qwen3_embed": {
        "pooled": True,
        "auto": "AutoModel",
        "config": decoder("Qwen3ForCausalLM", "qwen3", rope_theta=1000.0, head_dim=24, tie_word_embeddings=True),
        "pooling": {"mode": "lasttoken", "normalise": True},
        "scales": [("q_norm", 1.8, 0.5), ("k_norm", 1.8, 0.5)],
        "drop": "model.",
        "variants": {
            "mean": {"pooling": {"mode": "mean", "normalise": True}},
            "not normalised": {"pooling": {"mode": "lasttoken", "normalise": False}},
            "rope_theta": {"patch": {"rope_theta": 100.0}},
        },
    },
    "qwen3_score": {
        "pooled": True,
        "auto": "AutoModelForSequenceClassification",
        "config": decoder("Qwen3ForSequenceClassification", "qwen3", rope_theta=1000.0, head_dim=24, id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0}),
        "scales": [("q_norm", 1.8, 0.5), ("k_norm", 1.8, 0.5)],
        "variants": {
            "two labels": {"patch": {"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}}},
            "rope_theta": {"patch": {"rope_theta": 100.0}},
        },
    },
    "bert": {
        "pooled": True,
        "auto": "AutoModel",
        "config": encoder("BertModel", "bert"),
        "segments": True,
        "variants": {
            "mean": {"pooling": {"mode": "mean", "normalise": True}},
            "last, not normalised": {"pooling": {"mode": "lasttoken", "normalise": False}},
            "layer_norm_eps": {"patch": {"layer_norm_eps": 0.3}},
            "num_attention_heads": {"patch": {"num_attention_heads": 2}},
        },
    },
    "bert_score": {
        "pooled": True,
        "auto": "AutoModelForSequenceClassification",
        "config": encoder("BertForSequenceClassification", "bert", id2label={"0": "a", "1": "b", "2": "c"}, label2id={"a": 0, "b": 1, "c": 2}),
        "segments": True,
        "variants": {
            "one label": {"patch": {"id2label": {"0": "a"}, "label2id": {"a": 0}}},
            "layer_norm_eps": {"patch": {"layer_norm_eps": 0.3}},
        },
    },
    "xlm_roberta": {
        "pooled": True,
        "auto": "AutoModel",
        "config": encoder("XLMRobertaModel", "xlm-roberta", pad_token_id=1, type_vocab_size=1),
        "variants": {
            "mean": {"pooling": {"mode": "mean", "normalise": True}},
            "last, not normalised": {"pooling": {"mode": "lasttoken", "normalise": False}},
            "layer_norm_eps": {"patch": {"layer_norm_eps": 0.3}},
            "pad_token_id": {"patch": {"pad_token_id": 0}},
            "padding inside a text": {"padding": [2, 3, 17], "pooling": {"mode": "mean", "normalise": True}},
        },
    },
    "xlm_roberta_score": {
        "pooled": True,
        "auto": "AutoModelForSequenceClassification",
        "config": encoder("XLMRobertaForSequenceClassification", "xlm-roberta", pad_token_id=1, type_vocab_size=1, id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0}),
        "variants": {
            "two labels": {"patch": {"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}}},
            "layer_norm_eps": {"patch": {"layer_norm_eps": 0.3}},
        },
    },
    "quantised": {
        "config": {**decoder("Qwen3ForCausalLM", "qwen3", rope_theta=1000.0, head_dim=32), "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2},
        "scales": [("q_norm", 1.8, 0.5), ("k_norm", 1.8, 0.5)],
        "stored": quants.stored,
        "variants": {
            "gptq": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}},
            "gptq with act-order": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True, "sym": False}},
            "awq": {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}},
            "fp8 in blocks": {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}},
            "compressed-tensors, fp8 by channel": {"quantization_config": compressed("float-quantized", 8, "float", "channel")},
            "compressed-tensors, fp8 by tensor": {"quantization_config": compressed("float-quantized", 8, "float", "tensor")},
            "compressed-tensors, int4": {"quantization_config": compressed("pack-quantized", 4, "int", "group", group_size=128)},
        },
    },
    "quantised_groups": {
        "config": {**decoder("Qwen3ForCausalLM", "qwen3", rope_theta=1000.0, head_dim=32), "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1},
        "scales": [("q_norm", 1.8, 0.5), ("k_norm", 1.8, 0.5)],
        "stored": quants.stored,
        "variants": {
            "gptq, 32": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": True}},
            "gptq with act-order, 64": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True, "sym": False}},
            "awq, 32": {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}},
            "awq, 64": {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"}},
            "compressed-tensors, 32": {"quantization_config": compressed("pack-quantized", 4, "int", "group", group_size=32)},
        },
    },
    "quantised_experts": {
        "config": {**decoder("Qwen3MoeForCausalLM", "qwen3_moe", rope_theta=1000.0, head_dim=32, num_experts=4, num_experts_per_tok=2,
                             moe_intermediate_size=128, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[]),
                   "hidden_size": 128, "num_hidden_layers": 1},
        "scales": [("q_norm", 1.8, 0.5), ("k_norm", 1.8, 0.5)],
        "stored": quants.stored,
        "variants": {
            "gptq": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}},
            "awq": {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}},
            "fp8 in blocks": {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}},
            "compressed-tensors, fp8 by tensor": {"quantization_config": compressed("float-quantized", 8, "float", "tensor")},
            "compressed-tensors, int4": {"quantization_config": compressed("pack-quantized", 4, "int", "group", group_size=128)},
        },
    },
    "qwen3_next": {
        "config": decoder("Qwen3NextForCausalLM", "qwen3_next", rope_theta=1000.0, head_dim=24, partial_rotary_factor=0.5, **DELTA,
                          num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=48,
                          norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], full_attention_interval=2),
        "norm_base": 0.0,
        "scales": HYBRID,
        "variants": {
            "rope_theta": {"rope_theta": 100.0},
            "rms_norm_eps": {"rms_norm_eps": 0.3},
            "tie_word_embeddings": {"tie_word_embeddings": True},
            "partial_rotary_factor": {"partial_rotary_factor": 1.0},
            "full_attention_interval": {"full_attention_interval": 4},
            "layer_types": {"layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"]},
            "linear_conv_kernel_dim": {"linear_conv_kernel_dim": 3},
            "linear_num_value_heads": {"linear_num_value_heads": 2},
            "norm_topk_prob": {"norm_topk_prob": False},
            "mlp_only_layers": {"mlp_only_layers": [2]},
        },
    },
    "qwen3_5": {
        "config": decoder("Qwen3_5ForCausalLM", "qwen3_5_text", head_dim=24, **DELTA, layer_types=["linear_attention", "full_attention"] * 2,
                          rope_parameters={"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 2, 2], "mrope_interleaved": True}),
        "norm_base": 0.0,
        "scales": HYBRID,
        "variants": {
            "rope_theta": {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}},
            "rms_norm_eps": {"rms_norm_eps": 0.3},
            "tie_word_embeddings": {"tie_word_embeddings": True},
            "linear_conv_kernel_dim": {"linear_conv_kernel_dim": 3},
            "linear_num_value_heads": {"linear_num_value_heads": 2},
            "layer_types": {"layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"]},
        },
    },
    "qwen3_5_moe": {
        "config": decoder("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", head_dim=24, **DELTA, layer_types=["linear_attention", "full_attention"] * 2,
                          num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=48,
                          rope_parameters={"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 2, 2], "mrope_interleaved": True}),
        "norm_base": 0.0,
        "scales": HYBRID,
        "variants": {
            "rope_theta": {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}},
            "num_experts_per_tok": {"num_experts_per_tok": 3},
            "linear_num_value_heads": {"linear_num_value_heads": 2},
            "experts in one tensor": {},
        },
        "layouts": {"experts in one tensor": together},
    },
    "deepseek_v2": {
        "config": decoder("DeepseekV2ForCausalLM", "deepseek_v2", num_key_value_heads=4, rope_theta=1000.0, kv_lora_rank=40, q_lora_rank=None, qk_nope_head_dim=24,
                          qk_rope_head_dim=16, v_head_dim=20, n_routed_experts=6, n_shared_experts=2, num_experts_per_tok=2, moe_intermediate_size=32,
                          first_k_dense_replace=1, routed_scaling_factor=1.0, topk_method="greedy", n_group=1, topk_group=1, norm_topk_prob=False,
                          scoring_func="softmax", attention_bias=False, rope_scaling={**DEEPYARN}),
        "variants": {
            "rope_theta": {"rope_theta": 100.0},
            "rms_norm_eps": {"rms_norm_eps": 0.3},
            "tie_word_embeddings": {"tie_word_embeddings": True},
            "q_lora_rank": {"q_lora_rank": 48},
            "kv_lora_rank": {"kv_lora_rank": 32},
            "v_head_dim": {"v_head_dim": 16},
            "no yarn": {"rope_scaling": None},
            "mscale": {"rope_scaling": {**DEEPYARN, "mscale": 1.0}},
            "mscale_all_dim": {"rope_scaling": {**DEEPYARN, "mscale_all_dim": 0.3}},
            "routed_scaling_factor": {"routed_scaling_factor": 2.0},
            "first_k_dense_replace": {"first_k_dense_replace": 2},
            "group_limited_greedy": {"topk_method": "group_limited_greedy", "n_group": 3, "topk_group": 1},
        },
    },
}


def seeing(family, architecture, model_type, vision, **more):
    """The same text model inside one that sees images; its eyes are left out."""
    text = {k: v for k, v in family["config"].items() if k not in ("architectures", "torch_dtype")}
    config = {"architectures": [architecture], "model_type": model_type, "text_config": text, "vision_config": vision, "torch_dtype": "float32",
              "tie_word_embeddings": text["tie_word_embeddings"], "eos_token_id": 2, **more}
    return {**family, "config": config, "auto": "AutoModelForImageTextToText", "ignore": ["vision", "visual", "multi_modal"],
            "variants": {name: {"text_config": patch} for name, patch in family["variants"].items() if name in ("rope_theta", "sliding_window", "layer_types")}}


FAMILIES["gemma3_vl"] = seeing(
    FAMILIES["gemma3"], "Gemma3ForConditionalGeneration", "gemma3",
    {"model_type": "siglip_vision_model", "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14},
    mm_tokens_per_image=4, image_token_index=70, boi_token_index=69, eoi_token_index=68)
