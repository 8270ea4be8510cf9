package model

import "roundhouse/kernels"

// mlp records down(act(gate(in)) · up(in)) with inner columns.
func (g *graph) mlp(prefix string, in kernels.Tensor, inner int, act kernels.Activation, bias bool) kernels.Tensor {
	both := g.value("gate_up", kernels.Tokens, 2*inner)
	wide := g.value("inner", kernels.Tokens, inner)
	out := g.value("branch", kernels.Tokens, g.Hidden)
	gateUp := &kernels.Linear{In: in, Out: both, Add: kernels.None, Weights: []kernels.Weight{
		g.matrix(prefix+"gate_proj.weight", inner, g.Hidden), g.matrix(prefix+"up_proj.weight", inner, g.Hidden)}}
	down := &kernels.Linear{In: wide, Out: out, Add: kernels.None, Weights: []kernels.Weight{
		g.matrix(prefix+"down_proj.weight", g.Hidden, inner)}}
	if bias {
		gateUp.Biases = []kernels.Weight{g.vector(prefix+"gate_proj.bias", inner), g.vector(prefix+"up_proj.bias", inner)}
		down.Biases = []kernels.Weight{g.vector(prefix+"down_proj.bias", g.Hidden)}
	}
	g.prog.Do(gateUp)
	g.prog.Do(&kernels.Activate{In: both, Out: wide, Kind: act, Up: true})
	g.prog.Do(down)
	return out
}
