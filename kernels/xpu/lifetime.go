package xpu

import (
	"slices"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// tensors are the values that an operation reads or writes.
func tensors(op kernels.Op) []kernels.Tensor {
	switch op := op.(type) {
	case *kernels.Embed:
		return []kernels.Tensor{op.Out}
	case *kernels.Norm:
		return []kernels.Tensor{op.In, op.Add, op.Out}
	case *kernels.Linear:
		return []kernels.Tensor{op.In, op.Add, op.Out}
	case *kernels.RoPE:
		return []kernels.Tensor{op.X}
	case *kernels.Attention:
		return []kernels.Tensor{op.Q, op.K, op.V, op.Out}
	case *kernels.Activate:
		return []kernels.Tensor{op.In, op.Out}
	case *kernels.MoE:
		return []kernels.Tensor{op.In, op.Add, op.Out}
	case *kernels.Scale:
		return []kernels.Tensor{op.In, op.Gate, op.Add, op.Out}
	case *kernels.Delta:
		return []kernels.Tensor{op.QKV, op.Gates, op.Out}
	case *kernels.LoRA:
		return []kernels.Tensor{op.In, op.Out}
	case *kernels.Features:
		return []kernels.Tensor{op.Out}
	case *kernels.Convolution:
		return []kernels.Tensor{op.In, op.Out}
	case *kernels.Place:
		return []kernels.Tensor{op.X}
	case *kernels.Columns:
		return []kernels.Tensor{op.In, op.Out}
	case *kernels.Pick:
		return []kernels.Tensor{op.In, op.Out}
	case *kernels.Pool:
		return []kernels.Tensor{op.In, op.Out}
	case *kernels.Sample:
		return []kernels.Tensor{op.Logits}
	case *kernels.Output:
		return []kernels.Tensor{op.In}
	}
	return nil
}

// shared is what executables with Limits.Shared have in common: one of them runs at
// a time, and the queue is in order.
type shared struct {
	idle  []*cl.Buffer
	words []int32
	raw   []byte
	host  []float32
}

// share gives the buffers of an executable that was compiled to those after it.
func (e *executable) share() {
	e.done(e.step, e.parts)
	e.done(e.values...)
	e.b.shared.idle, e.idle = e.idle, nil
}

// lastUses is the operation after which each value is not looked at again. What is
// brought to the host lives on to the end.
func lastUses(p *kernels.Program) []int {
	last := make([]int, len(p.Values))
	for i, op := range p.Ops {
		for _, t := range tensors(op) {
			if t != kernels.None {
				last[t] = max(last[t], i)
			}
		}
		switch op := op.(type) {
		case *kernels.Output:
			last[op.In] = len(p.Ops)
		case *kernels.Sample:
			last[op.Logits] = len(p.Ops)
		}
	}
	return last
}

// lend finds room for n floats or dwords among what operations before have done
// with; the queue is in order, so nobody reads it any more.
func (e *executable) lend(n int) *cl.Buffer {
	size := 4 * int64(n)
	best := -1
	for i, b := range e.idle {
		if b.Size >= size && b.Size <= 2*size+4096 && (best < 0 || b.Size < e.idle[best].Size) {
			best = i
		}
	}
	if best < 0 {
		return e.room(n)
	}
	b := e.idle[best]
	e.idle = slices.Delete(e.idle, best, best+1)
	return b
}

// done gives lent buffers back to those who come after.
func (e *executable) done(all ...*cl.Buffer) {
	for _, b := range all {
		if b != nil {
			e.idle = append(e.idle, b)
		}
	}
}

// begin gives each value of an operation that has none yet its buffer.
func (e *executable) begin(op kernels.Op) {
	for _, t := range tensors(op) {
		if t != kernels.None && e.values[t] == nil && e.err == nil {
			v := e.p.Values[t]
			e.values[t] = e.lend(e.limit(v.Rows) * v.Width)
		}
	}
}

// end gives back the values that operation i was the last to look at.
func (e *executable) end(i int, op kernels.Op, last []int) {
	for _, t := range tensors(op) {
		if t == kernels.None || last[t] != i || e.values[t] == nil {
			continue
		}
		e.wrote(t)
		e.done(e.values[t])
		e.values[t] = nil
	}
}
