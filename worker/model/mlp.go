package model

import "roundhouse/kernels"

// gated is an MLP down(act(gate(x)) · up(x)).
type gated struct {
	Inner int
	Act   kernels.Activation
	Bias  bool
	Fused bool // gate and up are one tensor, gate_up_proj
}

// mlp records a gated MLP whose tensors' names begin with prefix.
func (g *graph) mlp(prefix string, in kernels.Tensor, m gated) kernels.Tensor {
	out := g.value("branch", kernels.Tokens, g.Hidden)
	g.mlpTo(out, prefix, in, m)
	return out
}

func (g *graph) mlpTo(out kernels.Tensor, prefix string, in kernels.Tensor, m gated) {
	both := g.value("gate_up", kernels.Tokens, 2*m.Inner)
	wide := g.value("inner", kernels.Tokens, m.Inner)
	gateUp := &kernels.Linear{In: in, Out: both, Add: kernels.None}
	if m.Fused {
		gateUp.Weights = []kernels.Weight{g.matrix(prefix+"gate_up_proj.weight", 2*m.Inner, g.Hidden)}
	} else {
		gateUp.Weights = []kernels.Weight{g.matrix(prefix+"gate_proj.weight", m.Inner, g.Hidden), g.matrix(prefix+"up_proj.weight", m.Inner, g.Hidden)}
	}
	down := &kernels.Linear{In: wide, Out: out, Add: kernels.None, Weights: []kernels.Weight{g.matrix(prefix+"down_proj.weight", g.Hidden, m.Inner)}}
	if m.Bias {
		gateUp.Biases = []kernels.Weight{g.vector(prefix+"gate_proj.bias", m.Inner), g.vector(prefix+"up_proj.bias", m.Inner)}
		down.Biases = []kernels.Weight{g.vector(prefix+"down_proj.bias", g.Hidden)}
	}
	g.prog.Do(gateUp)
	if m.Fused {
		g.adapt(in, both, prefix, part{"gate_up_proj", 2 * m.Inner, 0})
	} else {
		g.adapt(in, both, prefix, part{"gate_proj", m.Inner, 0}, part{"up_proj", m.Inner, m.Inner})
	}
	g.prog.Do(&kernels.Activate{In: both, Out: wide, Kind: m.Act, Up: true})
	g.prog.Do(down)
	g.adapt(wide, out, prefix, part{"down_proj", g.Hidden, 0})
}

// dense is the MLP of a decoder all of whose layers have the same one.
func (g *graph) dense(m gated) func(prefix string, layer int, in kernels.Tensor) kernels.Tensor {
	return func(prefix string, layer int, in kernels.Tensor) kernels.Tensor { return g.mlp(prefix+"mlp.", in, m) }
}
