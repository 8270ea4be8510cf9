package model

import (
	"math"

	"roundhouse/kernels"
)

// gemma3 has norms before and after each branch, their weights stored less
// one, embeddings scaled by the root of the width, and layers with a window
// and a base of their own between layers that see all.
//
// Gemma 3, text.
func gemma3(g *graph) {
	g.wantAct(g.HiddenActivation, "gelu_pytorch_tanh")
	g.want(g.AttnSoftCap == nil, "attn_logit_softcapping: transformers reads it for no Gemma 3")
	g.want(g.BothWays == nil || !*g.BothWays, "use_bidirectional_attention is for embedding models, which are not served")
	offset := float32(1) // of the norms' weights
	if g.settings.gguf != nil {
		offset, g.QueryScale = 0, g.ggufQueryScale()
	}
	g.want(g.QueryScale > 0, "query_pre_attn_scalar is %g; want more than 0", g.QueryScale)
	ropes := map[string]*rope{fullAttention: g.rope(fullAttention), slidingAttention: g.gemma3Local()}
	s := g.begin(float32(math.Sqrt(float64(g.Hidden))), offset)
	for i := range g.Layers {
		p := g.layer(i)
		s.branch(p+"input_layernorm", p+"post_attention_layernorm", func(in kernels.Tensor) kernels.Tensor {
			return g.attend(i, p+"self_attn.", in, attention{RoPE: ropes[g.layerType(i)], Bias: g.AttentionBias, OutBias: g.AttentionBias,
				QNorm: "q_norm", KNorm: "k_norm", NormOffset: offset, Scale: float32(1 / math.Sqrt(g.QueryScale))})
		})
		s.branch(p+"pre_feedforward_layernorm", p+"post_feedforward_layernorm", func(in kernels.Tensor) kernels.Tensor {
			return g.mlp(p+"mlp.", in, gated{Inner: g.Inner, Act: kernels.GELUTanh})
		})
	}
	// transformers caps in Gemma3ForCausalLM alone; vLLM in both, and so do we. The
	// published models have none.
	softCap := 0.0
	if g.LogitSoftCap != nil {
		softCap = *g.LogitSoftCap
	}
	s.end(float32(softCap))
}

// ggufQueryScale follows from the size, as those who define the format have it: the
// width of a head, but for the 27B, which has 62 layers.
func (s *settings) ggufQueryScale() float64 {
	if s.Layers == 62 && s.Heads > 0 {
		return float64(s.Hidden / s.Heads)
	}
	return float64(s.HeadDim)
}

// gemma3Local is the rotation of layers with a window. Before transformers 5
// its base stood apart, and rope_scaling was not for it.
func (g *graph) gemma3Local() *rope {
	if isNull(g.RopeParameters) {
		p := ropeParameters{Type: "default", Theta: g.LocalTheta, PartialRotary: 1}
		return g.newRope(p, p.check("rope_local_base_freq"))
	}
	return g.rope(slidingAttention)
}

func gemma3Defaults(s *settings) {
	s.HiddenActivation, s.NormEps, s.RopeTheta, s.LocalTheta, s.MaxPositions = "gelu_pytorch_tanh", 1e-6, 1_000_000, 10_000, 131072
	s.Heads, s.KVHeads, s.HeadDim, s.QueryScale, s.Tied = 8, 4, 256, 256, true
	s.Vocab, s.Hidden, s.Inner, s.Layers = 262_208, 2304, 9216, 26
	s.Window, s.WindowPattern = integer(4096), 6
}

// gemma3Windows: every WindowPattern-th layer sees all.
func gemma3Windows(s *settings) {
	if len(s.LayerTypes) > 0 || s.WindowPattern < 1 {
		return
	}
	for i := range min(max(s.Layers, 0), maxLayers) {
		kind := slidingAttention
		if (i+1)%s.WindowPattern == 0 {
			kind = fullAttention
		}
		s.LayerTypes = append(s.LayerTypes, kind)
	}
}
