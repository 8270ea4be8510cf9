package model

import "roundhouse/kernels"

// qwen2 is Llama's decoder with biases on queries, keys and values, and a
// window on the upper layers where the file asks for one.
//
// Qwen2, Qwen2.5, QwQ, and what was distilled into them.
func qwen2(g *graph) {
	g.wantAct(g.Act, "silu")
	rope := g.rope(fullAttention, g.HeadDim)
	s := g.begin(1, 0)
	for i := range g.Layers {
		p := layerPrefix(i)
		s.branch(p+"input_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return g.attend(i, p+"self_attn.", in, attention{RoPE: rope, Bias: true})
		})
		s.branch(p+"post_attention_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return g.mlp(p+"mlp.", in, g.Inner, kernels.SiLU, false)
		})
	}
	s.generate("model.norm", 0)
}

func qwen2Defaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-6, 10_000, 32768
	s.Window, s.UseWindow, s.MaxWindowLayers = intp(4096), boolp(false), 28
}

// qwenWindows turns Qwen's own settings of windows into layer types.
func qwenWindows(s *settings) {
	if s.UseWindow == nil || !*s.UseWindow {
		s.Window = nil
	}
	if s.Window == nil || len(s.LayerTypes) > 0 {
		return
	}
	for i := range min(max(s.Layers, 0), 1024) {
		kind := fullAttention
		if i >= s.MaxWindowLayers {
			kind = slidingAttention
		}
		s.LayerTypes = append(s.LayerTypes, kind)
	}
}

func intp(n int) *int    { return &n }
func boolp(b bool) *bool { return &b }
