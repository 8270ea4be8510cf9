package model

import "roundhouse/kernels"

// llama is the shape that most families follow: each layer adds attention of
// the normed stream, then a gated MLP of it.
//
// Llama 2 and 3, and what was distilled into them.
func llama(g *graph) {
	g.wantAct(g.Act, "silu")
	rope := g.rope(fullAttention, g.HeadDim)
	s := g.begin(1, 0)
	for i := range g.Layers {
		p := layerPrefix(i)
		s.branch(p+"input_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return g.attend(i, p+"self_attn.", in, attention{RoPE: rope, Bias: g.AttentionBias, OutBias: g.AttentionBias})
		})
		s.branch(p+"post_attention_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return g.mlp(p+"mlp.", in, g.Inner, kernels.SiLU, g.MLPBias)
		})
	}
	s.generate("model.norm", 0)
}

func llamaDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-6, 10_000, 2048
}
