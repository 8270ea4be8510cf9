package model

import "roundhouse/kernels"

// mixtral is Mistral's decoder with a mixture of experts in every layer.
func mixtral(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.layers(attention{RoPE: g.rope(fullAttention)}, func(p string, layer int, in kernels.Tensor) kernels.Tensor {
		out := g.value("branch", kernels.Tokens, g.Hidden)
		g.prog.Do(g.bindExperts(
			&kernels.MoE{In: in, Out: out, Add: kernels.None, Kind: kernels.SiLU, Top: g.ExpertsPerTok, Normalise: true},
			experts{Count: g.LocalExperts, Inner: g.Inner, Router: p + "block_sparse_moe.gate.weight", Prefix: p + "block_sparse_moe.experts.",
				Gate: "w1.weight", Up: "w3.weight", Down: "w2.weight"}))
		return out
	})
	s.end(0)
}

func mixtralDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-5, 1_000_000, 131072
	s.KVHeads, s.LocalExperts, s.ExpertsPerTok = 8, 8, 2
}
