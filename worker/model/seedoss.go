package model

import "roundhouse/kernels"

// seedOSS is Llama's decoder with biases on queries, keys and values.
func seedOSS(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.layers(
		attention{RoPE: g.rope(fullAttention), Bias: g.AttentionBias, OutBias: g.AttentionOutBias},
		g.dense(gated{Inner: g.Inner, Act: kernels.SiLU, Bias: g.MLPBias}))
	s.end(0)
}

func seedOSSDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-6, 10_000, 524288
	s.KVHeads, s.HeadDim, s.AttentionBias = 8, 128, true
}
