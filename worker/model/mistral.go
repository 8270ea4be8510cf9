package model

import "roundhouse/kernels"

// mistral is Llama's decoder with one window for all layers, where the file
// has one.
//
// Mistral 7B, Ministral, Mistral Nemo and Small.
func mistral(g *graph) {
	g.wantAct(g.Act, "silu")
	g.want(len(g.LayerTypes) == 0, "layer_types: this architecture has one kind of layer")
	s := g.begin(1, 0)
	s.layers(
		attention{RoPE: g.rope(fullAttention)},
		g.dense(gated{Inner: g.Inner, Act: kernels.SiLU}))
	s.end(0)
}

func mistralDefaults(s *settings) {
	s.Act, s.NormEps, s.RopeTheta, s.MaxPositions = "silu", 1e-6, 10_000, 131072
	s.KVHeads, s.Window = 8, integer(4096)
}
