package model

import (
	"slices"

	"roundhouse/kernels"
)

// qwen2Seeing is Qwen2's decoder with rows of pictures in place of their tokens,
// whose positions have three axes.
//
// Qwen2-VL, UI-TARS, MinerU2.5, Qwen2.5-VL.
func qwen2Seeing(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.show()
	s.layers(attention{RoPE: g.axialRope(inOrder), Bias: true}, g.dense(gated{Inner: g.Inner, Act: kernels.SiLU}))
	s.end(0)
}

// qwen2Tower has layer norms and an MLP with CLIP's activation.
func qwen2Tower(g *graph) *tower {
	v := g.eyes
	t := newTower(g, v.Embed)
	kind := t.activation()
	g.want(v.Hidden == g.Hidden, "vision_config: hidden_size is %d, and the text's %d", v.Hidden, g.Hidden)
	inner := int(float64(v.Embed) * v.Ratio)
	g.want(inner >= 1 && inner <= 1<<20, "vision_config: mlp_ratio is %g", v.Ratio)
	if len(g.faults) > 0 {
		return t
	}
	t.patches(patches{})
	for i := range v.Depth {
		t.layer(i, false, func(p string, in kernels.Tensor) kernels.Tensor { return t.plainMLP(in, p+"fc1", p+"fc2", inner, kind) })
	}
	t.merge(merger{Norm: "merger.ln_q", First: "merger.mlp.0", Last: "merger.mlp.2"})
	return t
}

// qwen25Tower has RMS norms, a gated MLP, and windows in all layers but some.
func qwen25Tower(g *graph) *tower {
	v := g.eyes
	t := newTower(g, v.Hidden)
	t.rms = true
	g.wantAct(v.Act, "silu")
	t.bound("intermediate_size", v.Inner, 1, 1<<20)
	g.want(v.Out == g.Hidden, "vision_config: out_hidden_size is %d, and the text's hidden_size %d", v.Out, g.Hidden)
	g.want(v.Window >= v.Patch*v.Merge, "vision_config: window_size is %d; want a row of %d pixels at least", v.Window, v.Patch*v.Merge)
	if len(g.faults) > 0 {
		return t
	}
	t.patches(patches{})
	for i := range v.Depth {
		t.layer(i, !slices.Contains(v.Whole, i), func(p string, in kernels.Tensor) kernels.Tensor {
			return t.gatedMLP(in, p+"gate_proj", p+"up_proj", p+"down_proj", true, t.width, v.Inner)
		})
	}
	t.merge(merger{Norm: "merger.ln_q", RMS: true, First: "merger.mlp.0", Last: "merger.mlp.2"})
	return t
}

func seeingDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-5, 1e6, 32768
	s.Window, s.MaxWindowLayers = integer(4096), 80
	openEyes(s, 151655)
}

// openEyes are the defaults of all towers; image is the token of a row.
func openEyes(s *settings, image int32) {
	s.ImageToken, s.mrope = &image, true
	s.eyes = &visionSettings{Depth: 32, Heads: 16, Channels: 3, Patch: 14, Temporal: 2, Merge: 2}
	s.eyes.Rope.Theta = 10_000
}

func qwen2VLDefaults(s *settings) {
	seeingDefaults(s)
	s.eyes.Embed, s.eyes.Hidden, s.eyes.Act, s.eyes.Ratio = 1280, 3584, "quick_gelu", 4
}

func qwen25VLDefaults(s *settings) {
	seeingDefaults(s)
	s.eyes.Hidden, s.eyes.Out, s.eyes.Act, s.eyes.Inner = 3584, 3584, "silu", 3420
	s.eyes.Window, s.eyes.Whole = 112, []int{7, 15, 23, 31}
}
