package model

import "roundhouse/kernels"

// qwen3 is Llama's decoder with RMS norms on each head of queries and keys.
func qwen3(g *graph) {
	g.wantAct(g.Act, "silu")
	rope := g.rope(fullAttention, g.HeadDim)
	s := g.begin(1, 0)
	for i := range g.Layers {
		p := layerPrefix(i)
		s.branch(p+"input_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return g.attend(i, p+"self_attn.", in, g.qwen3Attention(rope))
		})
		s.branch(p+"post_attention_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return g.mlp(p+"mlp.", in, g.Inner, kernels.SiLU, false)
		})
	}
	s.generate("model.norm", 0)
}

func (g *graph) qwen3Attention(r *rope) attention {
	return attention{RoPE: r, Bias: g.AttentionBias, OutBias: g.AttentionBias, QNorm: "q_norm", KNorm: "k_norm"}
}

func qwen3Defaults(s *settings) {
	qwen2Defaults(s)
	s.HeadDim = 128
}
