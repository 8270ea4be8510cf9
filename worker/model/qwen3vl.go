package model

import (
	"fmt"
	"slices"

	"roundhouse/kernels"
)

// qwen3Seeing is Qwen3's decoder with rows of pictures in place of their tokens,
// whose first layers are given what the tower saw on its way.
//
// Qwen3-VL.
func qwen3Seeing(g *graph) { qwen3Shown(g, g.dense(gated{Inner: g.Inner, Act: kernels.SiLU})) }

// qwen3MoESeeing is the same with a mixture of experts.
//
// Qwen3-VL-30B-A3B, Qwen3-VL-235B-A22B.
func qwen3MoESeeing(g *graph) {
	g.want(g.SparseStep >= 1, "decoder_sparse_step is %d; want 1 or more", g.SparseStep)
	qwen3Shown(g, qwen3Experts(g))
}

func qwen3Shown(g *graph, mlp func(string, int, kernels.Tensor) kernels.Tensor) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.show()
	a := g.qwen3Attention()
	a.RoPE = g.axialRope(inTurns)
	s.layers(a, func(p string, layer int, in kernels.Tensor) kernels.Tensor {
		out := mlp(p, layer, in)
		s.showDeep(layer)
		return out
	})
	s.end(0)
}

// qwen3Tower has layer norms, a plain MLP, and a table of places; behind some of
// its layers are mergers of their own.
func qwen3Tower(g *graph) *tower {
	v := g.eyes
	t := newTower(g, v.Hidden)
	kind := t.activation()
	t.bound("intermediate_size", v.Inner, 1, 1<<20)
	t.bound("num_position_embeddings", v.Places, 1, 1<<20)
	g.want(v.Out == g.Hidden, "vision_config: out_hidden_size is %d, and the text's hidden_size %d", v.Out, g.Hidden)
	for i, layer := range v.Deep {
		g.want(layer >= 0 && layer < v.Depth && !slices.Contains(v.Deep[:i], layer), "vision_config: deepstack_visual_indexes are %v; want different layers below %d", v.Deep, v.Depth)
	}
	if len(g.faults) > 0 {
		return t
	}
	t.patches(patches{Bias: true, Grid: &grid{Name: "pos_embed.weight", Rows: v.Places, Corners: true}})
	for i := range v.Depth {
		t.layer(i, false, func(p string, in kernels.Tensor) kernels.Tensor {
			return t.plainMLP(in, p+"linear_fc1", p+"linear_fc2", v.Inner, kind)
		})
		if k := slices.Index(v.Deep, i); k >= 0 {
			p := fmt.Sprintf("deepstack_merger_list.%d.", k)
			t.merge(merger{Norm: p + "norm", Folded: true, First: p + "linear_fc1", Last: p + "linear_fc2", Aside: true})
		}
	}
	t.merge(merger{Norm: "merger.norm", First: "merger.linear_fc1", Last: "merger.linear_fc2"})
	return t
}

func qwen3VLDefaults(s *settings) {
	seeingDefaults(s)
	s.Window, s.NormEps, s.RopeTheta, s.MaxPositions, s.HeadDim = nil, 1e-6, 500_000, 128_000, 128
	qwen3Eyes(s)
	s.eyes.Deep = []int{8, 16, 24}
}

// qwen3Eyes are the tower's.
func qwen3Eyes(s *settings) {
	v := s.eyes
	v.Depth, v.Patch, v.Hidden, v.Out, v.Inner, v.Act, v.Places = 27, 16, 1152, 3584, 4304, "gelu_pytorch_tanh", 2304
}

func qwen3VLMoEDefaults(s *settings) {
	qwen3VLDefaults(s)
	s.HeadDim, s.KVHeads, s.ExpertsPerTok, s.ExpertInner, s.Experts, s.SparseStep, s.Tied = 0, 16, 4, 1408, 60, 1, true
}

// qwen3VLFinish: what text_config says of windows is not read, and the weights of
// the chosen experts sum to one whatever it says.
func qwen3VLFinish(s *settings) { s.Window, s.NormTopK = nil, true }

func qwen35VLDefaults(s *settings) {
	qwen35Defaults(s)
	qwen35Eyes(s)
}

func qwen35MoEVLDefaults(s *settings) {
	qwen35MoEDefaults(s)
	qwen35Eyes(s)
}

func qwen35Eyes(s *settings) {
	openEyes(s, 248056)
	qwen3Eyes(s)
}

// qwen35VLFinish: no layer of the text is given more than rows.
func qwen35VLFinish(s *settings) {
	qwenHybridLayers(s)
	s.eyes.Deep = nil
}
