package model

import (
	"fmt"
	"slices"

	"roundhouse/kernels"
)

// experts names the tensors of a mixture of experts.
type experts struct {
	Count  int
	Inner  int
	Router string // the router's matrix
	Bias   string // added to scores for the choice alone; "": none
	Prefix string // of the experts: Prefix + number + "." + projection

	Gate, Up, Down string // projections
}

// bindExperts fills in the weights of a mixture and checks its bounds.
func (g *graph) bindExperts(op *kernels.MoE, e experts) *kernels.MoE {
	if !g.checkExperts(e.Count, e.Inner, op.Top) || g.hopeless() {
		return op
	}
	op.Router = g.router(e.Router, e.Count, g.Hidden)
	if e.Bias != "" {
		op.Bias = g.vector(e.Bias, e.Count)
	}
	if g.settings.gguf != nil {
		g.ggufExperts(op, e)
		return op
	}
	if g.has(e.Prefix + "gate_up_proj") {
		for i := range e.Count {
			op.GateUp = append(op.GateUp, g.expert(e.Prefix+"gate_up_proj", e.Count, i, 2*e.Inner, g.Hidden))
			op.Down = append(op.Down, g.expert(e.Prefix+"down_proj", e.Count, i, g.Hidden, e.Inner))
		}
		return op
	}
	for i := range e.Count {
		p := fmt.Sprintf("%s%d.", e.Prefix, i)
		op.GateUp = append(op.GateUp, g.stack(p+e.Gate, p+e.Up, e.Inner, g.Hidden))
		op.Down = append(op.Down, g.matrix(p+e.Down, g.Hidden, e.Inner))
	}
	return op
}

// expert binds one expert's matrix of a tensor (experts, out, in), or of one
// (experts, in, out), which Qwen3-VL's files have.
func (g *graph) expert(name string, count, i, out, in int) kernels.Weight {
	w := wanted{format: g.linearFormat(in), out: out, in: in, pieces: []piece{{name: name, shape: []int{count, out, in}, first: i, count: 1}}}
	turned := []int{count, in, out}
	if t := g.lookup(name); out != in && t != nil && slices.Equal(t.Shape, turned) {
		w.pieces[0].shape = turned
		w.make = func(data [][]byte, stored kernels.DType) (kernels.Source, error) {
			return kernels.Source{Type: stored, Data: transpose(data[0], in, out, stored.Size())}, nil
		}
	}
	return g.bind(w)
}

// checkExperts notes a fault unless a mixture's numbers make sense.
func (g *graph) checkExperts(count, inner, top int) bool {
	ok := count >= 1 && count <= 4096 && inner >= 1 && inner <= 1<<20 && top >= 1 && top <= count
	g.want(ok, "%d of %d experts with %d columns; want 1 to 4096 experts, and no more chosen than there are", top, count, inner)
	return ok
}
