package model

import "roundhouse/kernels"

// qwen3 is Llama's decoder with RMS norms on each head of queries and keys.
func qwen3(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.layers(g.qwen3Attention(), g.dense(gated{Inner: g.Inner, Act: kernels.SiLU}))
	s.end(0)
}

func (g *graph) qwen3Attention() attention {
	return attention{RoPE: g.rope(fullAttention), Bias: g.AttentionBias, OutBias: g.AttentionBias, QNorm: "q_norm", KNorm: "k_norm"}
}

func qwen3Defaults(s *settings) {
	qwen2Defaults(s)
	s.HeadDim = 128
}

func qwen3ScoreDefaults(s *settings) {
	qwen3Defaults(s)
	s.scoring = true
}
