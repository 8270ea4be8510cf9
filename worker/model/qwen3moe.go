package model

import (
	"cmp"
	"slices"

	"roundhouse/kernels"
)

// qwen3MoE is Qwen3's decoder with a mixture of experts in place of the MLP,
// in all layers but those that the file excepts.
//
// Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder.
func qwen3MoE(g *graph) {
	g.wantAct(g.Act, "silu")
	g.want(g.SparseStep >= 1, "decoder_sparse_step is %d; want 1 or more", g.SparseStep)
	s := g.begin(1, 0)
	s.layers(g.qwen3Attention(), qwen3Experts(g))
	s.end(0)
}

// qwen3Experts is the mixture of a layer, or the MLP of one that is excepted.
func qwen3Experts(g *graph) func(string, int, kernels.Tensor) kernels.Tensor {
	return func(p string, layer int, in kernels.Tensor) kernels.Tensor {
		if slices.Contains(g.DenseLayers, layer) || (layer+1)%max(g.SparseStep, 1) != 0 {
			return g.mlp(p+"mlp.", in, gated{Inner: g.Inner, Act: kernels.SiLU})
		}
		out := g.value("branch", kernels.Tokens, g.Hidden)
		g.prog.Do(g.bindExperts(
			&kernels.MoE{In: in, Out: out, Add: kernels.None, Kind: kernels.SiLU, Top: g.ExpertsPerTok, Normalise: g.NormTopK},
			experts{Count: g.Experts, Inner: g.ExpertInner, Router: p + "mlp.gate.weight", Prefix: p + "mlp.experts.",
				Gate: "gate_proj.weight", Up: "up_proj.weight", Down: "down_proj.weight"}))
		return out
	}
}

func qwen3MoEDefaults(s *settings) {
	qwen2Defaults(s)
	s.KVHeads, s.ExpertsPerTok, s.ExpertInner, s.SparseStep = 4, 8, 768, 1
}

// qwen3MoEFinish: a window, where there is one, is every layer's. The number of
// experts has another name where transformers 5 wrote the file.
func qwen3MoEFinish(s *settings) {
	s.Experts = cmp.Or(s.Experts, s.LocalExperts, 128)
	if !s.UseWindow {
		s.Window = nil
	}
}
