package model

import "roundhouse/kernels"

// qwen2 is Llama's decoder with biases on queries, keys and values, and a
// window on the upper layers where the file asks for one.
//
// Qwen2, Qwen2.5, QwQ, and what was distilled into them.
func qwen2(g *graph) {
	g.wantAct(g.Act, "silu")
	s := g.begin(1, 0)
	s.layers(
		attention{RoPE: g.rope(fullAttention), Bias: true},
		g.dense(gated{Inner: g.Inner, Act: kernels.SiLU}))
	s.end(0)
}

func qwen2Defaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-6, 10_000, 32768
	s.Window, s.MaxWindowLayers = integer(4096), 28
}

// qwenWindows turns Qwen's own settings of windows into layer types.
func qwenWindows(s *settings) {
	if !s.UseWindow {
		s.Window = nil
	}
	if s.Window == nil || len(s.LayerTypes) > 0 {
		return
	}
	for i := range min(max(s.Layers, 0), maxLayers) {
		kind := fullAttention
		if i >= s.MaxWindowLayers {
			kind = slidingAttention
		}
		s.LayerTypes = append(s.LayerTypes, kind)
	}
}

func integer(n int) *int { return &n }
