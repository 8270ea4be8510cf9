package model

import "roundhouse/kernels"

// glm is Llama's decoder with half of each head turning, in neighbouring
// pairs, and with gate and up in one tensor.
//
// GLM-4 (9B).
func glm(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.layers(g.glmAttention(), g.dense(gated{Inner: g.Inner, Act: kernels.SiLU, Fused: true}))
	s.end(0)
}

// glm4 is glm with norms after each branch too.
//
// GLM-4-0414, GLM-Z1.
func glm4(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.glm4Layers(g.glmAttention())
	s.end(0)
}

func (s *stream) glm4Layers(a attention) {
	g := s.g
	for i := range g.Layers {
		p := g.layer(i)
		s.branch(p+"input_layernorm", p+"post_self_attn_layernorm", func(in kernels.Tensor) kernels.Tensor {
			return g.attend(i, p+"self_attn.", in, a)
		})
		s.branch(p+"post_attention_layernorm", p+"post_mlp_layernorm", func(in kernels.Tensor) kernels.Tensor {
			return g.mlp(p+"mlp.", in, gated{Inner: g.Inner, Act: kernels.SiLU, Fused: true})
		})
	}
}

func (g *graph) glmAttention() attention {
	r := g.rope(fullAttention)
	r.Interleaved = true
	return attention{RoPE: r, Bias: g.AttentionBias}
}

func glmDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1.5625e-7, 10_000, 131072
	s.KVHeads, s.HeadDim, s.PartialRotary, s.AttentionBias = 2, 128, 0.5, true
}
