package model

import (
	"math"

	"roundhouse/kernels"
)

// deepseek2 has latent attention, and after the first layers experts beside
// some that are always there.
//
// DeepSeek-V2-Lite, DeepSeek-V2, DeepSeek-Coder-V2.
func deepseek2(g *graph) {
	g.wantAct(g.Act, "silu")
	g.want(!g.AttentionBias && !g.MLPBias, "attention_bias and mlp_bias: this architecture is known without")
	g.want(!g.NormTopK, "norm_topk_prob: transformers does not read it for this architecture")
	g.want(g.ScoringFunc == "" || g.ScoringFunc == "softmax", "scoring_func is %.40q; this architecture is known with softmax", g.ScoringFunc)
	g.want(g.TopKMethod == "greedy" || g.TopKMethod == "group_limited_greedy", "topk_method is %.40q; known are greedy and group_limited_greedy", g.TopKMethod)
	g.want(g.SharedExperts >= 1 && g.SharedExperts <= 64, "n_shared_experts is %d; want 1 to 64", g.SharedExperts)
	m, r := g.mla(), g.rope(fullAttention)
	scale := g.deepseekScale()
	s := g.begin(1, 0)
	for i := range g.Layers {
		p := g.layer(i)
		s.branch(p+"input_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return g.latent(i, p+"self_attn.", in, m, r, scale)
		})
		s.branch(p+"post_attention_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			if i < g.FirstDense {
				return g.mlp(p+"mlp.", in, gated{Inner: g.Inner, Act: kernels.SiLU})
			}
			return g.deepseekExperts(p+"mlp.", in)
		})
	}
	s.end(0)
}

func (g *graph) deepseekExperts(p string, in kernels.Tensor) kernels.Tensor {
	shared, out := g.value("shared", kernels.Tokens, g.Hidden), g.value("branch", kernels.Tokens, g.Hidden)
	g.mlpTo(shared, p+"shared_experts.", in, gated{Inner: g.ExpertInner * max(g.SharedExperts, 1), Act: kernels.SiLU})
	op := &kernels.MoE{In: in, Out: out, Add: shared, Kind: kernels.SiLU, Top: g.ExpertsPerTok, Scale: float32(g.RoutedScale)}
	if g.TopKMethod == "group_limited_greedy" {
		g.want(g.ExpertGroups >= 1 && g.TopGroups >= 1 && g.TopGroups <= g.ExpertGroups, "topk_group %d of n_group %d", g.TopGroups, g.ExpertGroups)
		op.Groups, op.TopGroups = g.ExpertGroups, g.TopGroups
	}
	g.prog.Do(g.bindExperts(op, experts{Count: g.RoutedExperts, Inner: g.ExpertInner, Router: p + "gate.weight",
		Prefix: p + "experts.", Gate: "gate_proj.weight", Up: "up_proj.weight", Down: "down_proj.weight"}))
	return out
}

// deepseekScale is the scale of scores, which YaRN sharpens here instead of in
// the rotation.
func (g *graph) deepseekScale() float32 {
	scale := 1 / math.Sqrt(float64(g.PlainDim+g.TurnedDim))
	if p, err := g.ropeOf(fullAttention); err == nil && p.Type != "default" && p.MScaleAll != 0 && p.Factor > 1 {
		sharper := 0.1*p.MScaleAll*math.Log(p.Factor) + 1
		scale *= sharper * sharper
	}
	return float32(scale)
}

func deepseek2Defaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-6, 10_000, 2048
	s.KVRank, s.QueryRank, s.PlainDim, s.TurnedDim, s.ValueDim = 512, integer(1536), 128, 64, 128
	s.RoutedExperts, s.SharedExperts, s.ExpertInner, s.RoutedScale, s.TopKMethod = 64, 2, 1407, 1, "greedy"
}

// deepseek2Heads: the head that turns is a part of a head.
func deepseek2Heads(s *settings) { s.HeadDim = s.TurnedDim }
