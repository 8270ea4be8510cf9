"""The model: Qwen3's decoder in plain torch, with Hugging Face's weight names, and its files."""

import json
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "eos_token_id": 1535,
    "pad_token_id": 1533,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 256,
    "initializer_range": 0.02,
    "intermediate_size": 512,
    "max_position_embeddings": 8192,
    "max_window_layers": 5,
    "num_attention_heads": 4,
    "num_hidden_layers": 5,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 1536,
}
GENERATION = {"eos_token_id": [1535, 1533], "pad_token_id": 1533, "do_sample": False}


class RMSNorm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(n)), eps

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight).to(x.dtype)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h, self.kv, self.d = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        n = c["hidden_size"]
        self.q_proj = nn.Linear(n, self.h * self.d, bias=False)
        self.k_proj = nn.Linear(n, self.kv * self.d, bias=False)
        self.v_proj = nn.Linear(n, self.kv * self.d, bias=False)
        self.o_proj = nn.Linear(self.h * self.d, n, bias=False)
        self.q_norm = RMSNorm(self.d, c["rms_norm_eps"])
        self.k_norm = RMSNorm(self.d, c["rms_norm_eps"])

    def forward(self, x, cos, sin, mask, cache=None):
        """x is [batch, time, hidden]. Without a cache and without a mask it is plainly causal."""
        b, t, _ = x.shape
        q = rotate(self.q_norm(self.q_proj(x).view(b, t, self.h, self.d)), cos, sin).transpose(1, 2)
        k = rotate(self.k_norm(self.k_proj(x).view(b, t, self.kv, self.d)), cos, sin).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.kv, self.d).transpose(1, 2)
        if cache is not None:
            k, v = cache.put(self, k, v)
        k, v = (y.repeat_interleave(self.h // self.kv, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, attn_mask=mask, is_causal=mask is None)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, self.h * self.d))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        n, m = c["hidden_size"], c["intermediate_size"]
        self.gate_proj = nn.Linear(n, m, bias=False)
        self.up_proj = nn.Linear(n, m, bias=False)
        self.down_proj = nn.Linear(m, n, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), MLP(c)
        self.input_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.post_attention_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, x, *how):
        x = x + self.self_attn(self.input_layernorm(x), *how)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])


class Model(nn.Module):
    def __init__(self, c=CONFIG):
        super().__init__()
        self.config, self.model = c, Body(c)
        d = c["head_dim"]
        freq = c["rope_theta"] ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        angle = torch.arange(c["max_position_embeddings"], dtype=torch.float64)[:, None] * freq
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)
        for p in self.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02 if p is self.model.embed_tokens.weight else p.shape[1] ** -0.5)
        for layer in self.model.layers:
            for p in (layer.self_attn.o_proj.weight, layer.mlp.down_proj.weight):
                p.data.mul_((2 * c["num_hidden_layers"]) ** -0.5)

    def hidden(self, ids, pos, mask=None, cache=None):
        cos, sin = self.cos[pos][:, :, None], self.sin[pos][:, :, None]
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, cos, sin, mask, cache)
        return self.model.norm(x)

    def logits(self, hidden):
        return F.linear(hidden, self.model.embed_tokens.weight)


def save(model, folder):
    """Writes config.json, generation_config.json and model.safetensors in bfloat16."""
    for name, content in (("config.json", CONFIG), ("generation_config.json", GENERATION)):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(content, f, indent=2)
            f.write("\n")
    weights = {k: v.detach().to(torch.bfloat16).contiguous() for k, v in model.state_dict().items()}
    path = os.path.join(folder, "model.safetensors")
    save_file(weights, path, metadata={"format": "pt"})
    os.chmod(path, 0o644)


def load(folder):
    """The model with its bfloat16 weights widened to float32."""
    model = Model()
    model.load_state_dict({k: v.float() for k, v in load_file(os.path.join(folder, "model.safetensors")).items()})
    return model.eval()
