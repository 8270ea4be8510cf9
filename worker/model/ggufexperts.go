package model

import (
	"strings"

	"roundhouse/kernels"
)

// ggufExperts binds the experts of a mixture as GGUF files have them: a tensor a
// projection, or one of gates and ups, whose first dimension is the experts.
func (g *graph) ggufExperts(op *kernels.MoE, e experts) {
	part := func(projection string) string { return e.Prefix + strings.TrimSuffix(projection, ".weight") }
	gateUp := []string{part(e.Gate), part(e.Up)}
	if both := e.Prefix + "gate_up_proj"; g.has(both) {
		gateUp = []string{both}
	}
	faulty := g.faulty
	for i := range e.Count {
		if g.faulty > faulty {
			return // of every expert it would be the same
		}
		op.GateUp = append(op.GateUp, g.ggufExpert(gateUp, e.Count, i, 2*e.Inner, g.Hidden))
		op.Down = append(op.Down, g.ggufExpert([]string{part(e.Down)}, e.Count, i, g.Hidden, e.Inner))
	}
}

// ggufExpert binds expert i's slices of tensors (experts, rows, in), one below the
// other.
func (b *binder) ggufExpert(names []string, count, i, out, in int) kernels.Weight {
	w := wanted{format: b.linearFormat(in), out: out, in: in}
	for _, name := range names {
		w.pieces = append(w.pieces, piece{name: name, shape: []int{count, out / len(names), in}, first: i, count: 1})
	}
	b.block(&w)
	return b.bind(w)
}
