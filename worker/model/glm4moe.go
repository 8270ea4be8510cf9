package model

import "roundhouse/kernels"

// glm4MoE is Llama's decoder with half of each head turning, QK norms where
// the file asks for them, and, after the first layers, experts that are chosen
// by a biased sigmoid beside one that is always there.
//
// GLM-4.5, GLM-4.5-Air, GLM-4.6; GLM-4.5V, GLM-4.6V.
func glm4MoE(g *graph) {
	g.wantAct(g.Act, "silu")
	g.want(g.SharedExperts >= 1 && g.SharedExperts <= 64, "n_shared_experts is %d; want 1 to 64", g.SharedExperts)
	g.want(g.ExpertGroups >= 1 && g.TopGroups >= 1 && g.TopGroups <= g.ExpertGroups, "topk_group %d of n_group %d", g.TopGroups, g.ExpertGroups)
	a := attention{RoPE: g.rope(fullAttention), Bias: g.AttentionBias}
	if g.QKNorm {
		a.QNorm, a.KNorm = "q_norm", "k_norm"
	}
	s := g.begin(1, 0)
	if g.eyes != nil {
		a.RoPE = g.axialRope(inOrder)
		s.show()
	}
	s.layers(a, func(p string, layer int, in kernels.Tensor) kernels.Tensor {
		if layer < g.FirstDense {
			return g.mlp(p+"mlp.", in, gated{Inner: g.Inner, Act: kernels.SiLU})
		}
		shared, out := g.value("shared", kernels.Tokens, g.Hidden), g.value("branch", kernels.Tokens, g.Hidden)
		g.mlpTo(shared, p+"mlp.shared_experts.", in, gated{Inner: g.ExpertInner * g.SharedExperts, Act: kernels.SiLU})
		g.prog.Do(g.bindExperts(
			&kernels.MoE{In: in, Out: out, Add: shared, Kind: kernels.SiLU, Top: g.ExpertsPerTok, Sigmoid: true,
				Normalise: g.NormTopK, Scale: float32(g.RoutedScale), Groups: g.ExpertGroups, TopGroups: g.TopGroups},
			experts{Count: g.RoutedExperts, Inner: g.ExpertInner, Router: p + "mlp.gate.weight", Bias: p + "mlp.gate.e_score_correction_bias",
				Prefix: p + "mlp.experts.", Gate: "gate_proj.weight", Up: "up_proj.weight", Down: "down_proj.weight"}))
		return out
	})
	s.end(0)
}

func glm4MoEDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions, s.PartialRotary = "silu", 1e-5, 10_000, 131072, 0.5
	s.KVHeads, s.ExpertInner, s.ExpertsPerTok, s.SharedExperts, s.RoutedExperts = 8, 1408, 8, 1, 128
	s.RoutedScale, s.ExpertGroups, s.TopGroups, s.FirstDense, s.NormTopK = 1, 1, 1, 1, true
}
