package model

import (
	"fmt"
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
	g.prog.Do(&kernels.Place{X: s.x, Width: g.Hidden})
	r := g.rope(fullAttention)
	axes, err := sectionsOf(g.settings, len(r.Freqs))
	g.want(err == nil, "%v", err)
	r.Axes = axes
	s.layers(attention{RoPE: r, Bias: true}, g.dense(gated{Inner: g.Inner, Act: kernels.SiLU}))
	s.end(0)
}

// sectionsOf is the axis of each pair where mrope_section gives them in order:
// time, line, column.
func sectionsOf(s *settings, pairs int) ([]uint8, error) {
	p, err := s.ropeOf(fullAttention)
	if err != nil {
		return nil, err
	}
	var axes []uint8
	for axis, n := range p.MRoPE {
		if n < 0 || n > pairs || axis > 2 {
			break
		}
		axes = append(axes, slices.Repeat([]uint8{uint8(axis)}, n)...)
	}
	if len(p.MRoPE) != 3 || len(axes) != pairs {
		return nil, fmt.Errorf("mrope_section is %v; want the pairs of each of 3 axes, of %d", p.MRoPE, pairs)
	}
	return axes, nil
}

// qwen2Tower has layer norms and an MLP with CLIP's activation.
func qwen2Tower(g *graph) *tower {
	v := g.eyes
	t := newTower(g, v.Embed)
	kind, known := map[string]kernels.Activation{"quick_gelu": kernels.QuickGELU, "gelu": kernels.GELU, "silu": kernels.SiLU}[v.Act]
	g.want(known, "vision_config: hidden_act is %q; this architecture is known with quick_gelu, gelu and silu", v.Act)
	g.want(v.Hidden == g.Hidden, "vision_config: hidden_size is %d, and the text's %d", v.Hidden, g.Hidden)
	inner := int(float64(v.Embed) * v.Ratio)
	g.want(inner >= 1 && inner <= 1<<20, "vision_config: mlp_ratio is %g", v.Ratio)
	if len(g.faults) > 0 {
		return t
	}
	t.patches()
	for i := range v.Depth {
		t.layer(i, false, func(p string, in kernels.Tensor) kernels.Tensor {
			wide := t.linear(in, p+"fc1", true, inner, v.Embed)
			t.prog.Do(&kernels.Activate{In: wide, Out: wide, Kind: kind})
			return t.linear(wide, p+"fc2", true, v.Embed, inner)
		})
	}
	t.merge(g.Hidden)
	return t
}

// qwen25Tower has RMS norms, a gated MLP, and windows in all layers but some.
func qwen25Tower(g *graph) *tower {
	v := g.eyes
	t := newTower(g, v.Hidden)
	t.rms = true
	g.wantAct(v.Act, "silu")
	g.want(v.Out == g.Hidden, "vision_config: out_hidden_size is %d, and the text's hidden_size %d", v.Out, g.Hidden)
	g.want(v.Inner >= 1 && v.Inner <= 1<<20, "vision_config: intermediate_size is %d; want 1 to %d", v.Inner, 1<<20)
	g.want(v.Window >= v.Patch*v.Merge, "vision_config: window_size is %d; want a row of %d pixels at least", v.Window, v.Patch*v.Merge)
	if len(g.faults) > 0 {
		return t
	}
	t.patches()
	for i := range v.Depth {
		t.layer(i, !slices.Contains(v.Whole, i), func(p string, in kernels.Tensor) kernels.Tensor {
			gate, up := t.linear(in, p+"gate_proj", true, v.Inner, v.Hidden), t.linear(in, p+"up_proj", true, v.Inner, v.Hidden)
			t.prog.Do(&kernels.Scale{In: up, Gate: gate, Kind: kernels.SiLU, Add: kernels.None, Out: up})
			return t.linear(up, p+"down_proj", true, v.Hidden, v.Inner)
		})
	}
	t.merge(g.Hidden)
	return t
}

func seeingDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-5, 1e6, 32768
	s.Window, s.MaxWindowLayers = integer(4096), 80
	image := int32(151655)
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
