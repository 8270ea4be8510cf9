package model

import "roundhouse/kernels"

// llama is the shape that most families follow; see stream.layers.
//
// Llama 2 and 3, and what was distilled into them.
func llama(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.layers(
		attention{RoPE: g.rope(fullAttention), Bias: g.AttentionBias, OutBias: g.AttentionBias},
		g.dense(gated{Inner: g.Inner, Act: kernels.SiLU, Bias: g.MLPBias}))
	s.end(0)
}

func llamaDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-6, 10_000, 2048
}
