package model

import (
	"fmt"

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
	if !g.checkExperts(e.Count, e.Inner, op.Top) {
		return op
	}
	op.Router = g.router(e.Router, e.Count, g.Hidden)
	if e.Bias != "" {
		op.Bias = g.vector(e.Bias, e.Count)
	}
	for i := range e.Count {
		p := fmt.Sprintf("%s%d.", e.Prefix, i)
		op.GateUp = append(op.GateUp, g.stack(p+e.Gate, p+e.Up, e.Inner, g.Hidden))
		op.Down = append(op.Down, g.matrix(p+e.Down, g.Hidden, e.Inner))
	}
	return op
}

// checkExperts notes a fault unless a mixture's numbers make sense.
func (g *graph) checkExperts(count, inner, top int) bool {
	ok := count >= 1 && count <= 4096 && inner >= 1 && inner <= 1<<20 && top >= 1 && top <= count
	g.want(ok, "%d of %d experts with %d columns; want 1 to 4096 experts, and no more chosen than there are", top, count, inner)
	return ok
}
