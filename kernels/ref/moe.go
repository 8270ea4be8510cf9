package ref

import (
	"math"
	"slices"

	"roundhouse/kernels"
)

// moe sends each row through its chosen experts and adds up what they give,
// in the order in which they were chosen.
func (e *executable) moe(op *kernels.MoE) {
	for i := range e.count(op.In) {
		in, out := e.row(op.In, i), e.row(op.Out, i)
		sum := make([]float64, len(out))
		chosen, weights := route(op, in)
		for c, expert := range chosen {
			y := runExpert(op, expert, in)
			for k := range sum {
				sum[k] += weights[c] * y[k]
			}
		}
		for k := range out {
			if op.Add != kernels.None {
				sum[k] += float64(e.row(op.Add, i)[k])
			}
			out[k] = float32(sum[k])
		}
	}
}

// route chooses experts by score, ties to the lower number, and gives each its
// weight.
func route(op *kernels.MoE, in []float32) (chosen []int, weights []float64) {
	scores := multiply(op.Router.(*weight), in)
	addVector(scores, op.RouterAdd)
	switch {
	case op.Sigmoid:
		for i, s := range scores {
			scores[i] = sigmoid(s)
		}
	case !op.TopFirst:
		softmax(scores)
	}
	choice := slices.Clone(scores)
	addVector(choice, op.Bias)
	if op.Groups > 1 {
		keepGroups(op, choice)
	}
	chosen = order(choice)[:op.Top]
	for _, c := range chosen {
		weights = append(weights, scores[c])
	}
	if op.TopFirst && !op.Sigmoid {
		softmax(weights)
	}
	scale := float64(one(op.Scale))
	if op.Normalise {
		var total float64
		for _, w := range weights {
			total += w
		}
		scale /= total + 1e-20
	}
	for i := range weights {
		weights[i] *= scale
	}
	return chosen, weights
}

// keepGroups leaves the experts of the best groups alone in the choice. A
// group's score is its best expert's, or the sum of its best two where the
// choice has a bias.
func keepGroups(op *kernels.MoE, choice []float64) {
	size := len(choice) / op.Groups
	scores := make([]float64, op.Groups)
	for g := range scores {
		group := choice[g*size : (g+1)*size]
		best := order(group)
		scores[g] = group[best[0]]
		if op.Bias != nil && size > 1 {
			scores[g] += group[best[1]]
		}
	}
	for _, g := range order(scores)[op.TopGroups:] {
		for i := range size {
			choice[g*size+i] = math.Inf(-1)
		}
	}
}

// order is the indexes of x from the greatest on, ties to the lower.
func order(x []float64) []int {
	index := make([]int, len(x))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int {
		switch {
		case x[a] > x[b]:
			return -1
		case x[a] < x[b]:
			return 1
		}
		return 0
	})
	return index
}

func softmax(x []float64) {
	most := slices.Max(x)
	var total float64
	for i := range x {
		x[i] = math.Exp(x[i] - most)
		total += x[i]
	}
	for i := range x {
		x[i] /= total
	}
}

// addVector adds a bias, if there is one.
func addVector(x []float64, bias kernels.Weight) {
	if bias == nil {
		return
	}
	for i, b := range bias.(*weight).values {
		x[i] += b
	}
}

// runExpert is down · act(gateUp · x).
func runExpert(op *kernels.MoE, expert int, in []float32) []float64 {
	both := multiply(op.GateUp[expert].(*weight), in)
	if op.GateUpAdd != nil {
		addVector(both, op.GateUpAdd[expert])
	}
	inner := make([]float32, len(both)/2)
	for k := range inner {
		gate, up := float64(float32(both[k])), float64(float32(both[len(inner)+k])) // result
		inner[k] = float32(gated(op.Kind, gate, up, float64(op.Limit)))             // result
	}
	y := multiply(op.Down[expert].(*weight), inner)
	if op.DownAdd != nil {
		addVector(y, op.DownAdd[expert])
	}
	return y
}
