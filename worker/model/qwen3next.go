package model

import (
	"slices"

	"roundhouse/kernels"
)

// qwen3Next has the gated delta rule in most layers and attention with an
// output gate in every fourth; norms are stored less one; beside the experts
// stands one that is always there, behind a gate.
//
// Qwen3-Next-80B-A3B.
func qwen3Next(g *graph) {
	d := g.deltaNet()
	d.fused = true
	g.qwenHybrid(d, g.qwenExperts)
}

// qwen35MoE is the same with the rule's projections in tensors of their own.
//
// Qwen3.5 and Qwen3.6 with experts.
func qwen35MoE(g *graph) { g.qwenHybrid(g.deltaNet(), g.qwenExperts) }

// qwenExperts is the mixture of a layer, or the MLP of one that is excepted.
func (g *graph) qwenExperts(p string, layer int, in kernels.Tensor) kernels.Tensor {
	if slices.Contains(g.DenseLayers, layer) || g.SparseStep < 1 || (layer+1)%g.SparseStep != 0 {
		return g.mlp(p+"mlp.", in, gated{Inner: g.Inner, Act: kernels.SiLU})
	}
	shared := g.gatedExpert(p+"mlp.", in)
	out := g.value("branch", kernels.Tokens, g.Hidden)
	g.prog.Do(g.bindExperts(
		&kernels.MoE{In: in, Out: out, Add: shared, Kind: kernels.SiLU, Top: g.ExpertsPerTok, Normalise: g.NormTopK},
		experts{Count: g.Experts, Inner: g.ExpertInner, Router: p + "mlp.gate.weight", Prefix: p + "mlp.experts.",
			Gate: "gate_proj.weight", Up: "up_proj.weight", Down: "down_proj.weight"}))
	return out
}

// qwen35 is Qwen3-Next with an MLP in place of the experts.
//
// Qwen3.5 and Qwen3.6, dense.
func qwen35(g *graph) {
	g.qwenHybrid(g.deltaNet(), g.dense(gated{Inner: g.Inner, Act: kernels.SiLU}))
}

// qwenHybrid records the layers; mlp is what follows attention or the rule.
func (g *graph) qwenHybrid(d deltaNet, mlp func(string, int, kernels.Tensor) kernels.Tensor) {
	g.wantAct(g.Act, "silu")
	g.want(!g.AttentionBias, "attention_bias: this architecture is known without")
	a := attention{RoPE: g.rope(fullAttention), QNorm: "q_norm", KNorm: "k_norm", NormOffset: 1, Gate: true}
	s := g.begin(1, 1)
	if g.eyes != nil {
		a.RoPE = g.axialRope(inTurns)
		s.show()
	}
	for i := range g.Layers {
		p := g.layer(i)
		s.branch(p+"input_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			if g.layerType(i) == linearAttention {
				return g.delta(i, p+"linear_attn.", in, d)
			}
			return g.attend(i, p+"self_attn.", in, a)
		})
		s.branch(p+"post_attention_layernorm", "", func(in kernels.Tensor) kernels.Tensor { return mlp(p, i, in) })
	}
	s.end(0)
}

// gatedExpert is the expert that every token has, times sigmoid of its gate.
func (g *graph) gatedExpert(p string, in kernels.Tensor) kernels.Tensor {
	shared, gate := g.value("shared", kernels.Tokens, g.Hidden), g.value("shared gate", kernels.Tokens, 1)
	if g.SharedInner < 1 || g.SharedInner > 1<<20 {
		g.want(false, "shared_expert_intermediate_size is %d; want 1 to 1048576", g.SharedInner)
		return shared
	}
	g.mlpTo(shared, p+"shared_expert.", in, gated{Inner: g.SharedInner, Act: kernels.SiLU})
	g.prog.Do(&kernels.Linear{In: in, Out: gate, Add: kernels.None, Weights: []kernels.Weight{g.router(p+"shared_expert_gate.weight", 1, g.Hidden)}})
	g.prog.Do(&kernels.Scale{In: shared, Gate: gate, Kind: kernels.Sigmoid, Add: kernels.None, Out: shared})
	return shared
}

func qwen3NextDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions, s.PartialRotary = "silu", 1e-6, 10_000, 32768, 0.25
	s.KVHeads, s.HeadDim = 2, 256
	s.DeltaKeyHeads, s.DeltaValueHeads, s.DeltaKeyDim, s.DeltaValueDim, s.DeltaTaps = 16, 32, 128, 128, 4
	s.Experts, s.ExpertsPerTok, s.ExpertInner, s.SharedInner, s.SparseStep, s.NormTopK = 512, 10, 512, 512, 1, true
	s.FullInterval = 4
}

func qwen35Defaults(s *settings) {
	qwen3NextDefaults(s)
	s.KVHeads, s.mrope = 4, true
}

func qwen35MoEDefaults(s *settings) {
	qwen3NextDefaults(s)
	s.Experts, s.ExpertsPerTok, s.mrope = 256, 8, true
	s.Inner = 1 // there is no MLP but the experts
}

// qwenHybridLayers: every FullInterval-th layer is attention.
func qwenHybridLayers(s *settings) {
	if len(s.LayerTypes) > 0 || s.FullInterval < 1 {
		return
	}
	for i := range min(max(s.Layers, 0), maxLayers) {
		kind := linearAttention
		if (i+1)%s.FullInterval == 0 {
			kind = fullAttention
		}
		s.LayerTypes = append(s.LayerTypes, kind)
	}
}
