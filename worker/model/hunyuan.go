package model

import "roundhouse/kernels"

// hunyuan is Qwen3's decoder with the norms of queries and keys after RoPE,
// whose base is stretched by a fixed alpha.
//
// Hunyuan dense (0.5B to 7B).
func hunyuan(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.layers(
		attention{RoPE: g.rope(fullAttention), Bias: g.AttentionBias, OutBias: g.AttentionBias,
			QNorm: "query_layernorm", KNorm: "key_layernorm", NormLast: true},
		g.dense(gated{Inner: g.Inner, Act: kernels.SiLU}))
	s.end(0)
}

func hunyuanDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-5, 10_000, 2048
}
