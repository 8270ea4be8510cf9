package ref

import (
	"fmt"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// adapters is room for the corrections of one matrix.
type adapters struct {
	out, in, rank int
	slots         []adapter
}

// adapter is a slot: A (rank, in), B (out, rank) and the factor. a is nil in an
// empty one.
type adapter struct {
	a, b   *weight
	factor float32
}

// Adapters implements kernels.Adapting.
func (*Backend) Adapters(out, in, slots, rank int) (kernels.Adapters, error) {
	if err := kernels.CheckRoom(out, in, slots, rank); err != nil {
		return nil, err
	}
	return &adapters{out: out, in: in, rank: rank, slots: make([]adapter, slots)}, nil
}

func (s *adapters) Shape() (out, in int) { return s.out, s.in }
func (s *adapters) Slots() int           { return len(s.slots) }
func (s *adapters) Rank() int            { return s.rank }
func (s *adapters) Bytes() int64         { return 8 * int64(len(s.slots)) * int64(s.rank) * int64(s.in+s.out) }

// Set implements kernels.Adapters.
func (s *adapters) Set(slot int, a, b kernels.Source, factor float32) error {
	if err := kernels.CheckAdapter(s, slot, a, b); err != nil {
		return err
	}
	down, err := New().Weight(a, kernels.FormatBF16)
	if err != nil {
		return err
	}
	up, err := New().Weight(b, kernels.FormatBF16)
	if err != nil {
		return err
	}
	s.slots[slot] = adapter{down.(*weight), up.(*weight), factor}
	return nil
}

// Clear implements kernels.Adapters.
func (s *adapters) Clear(slot int) error {
	if slot < 0 || slot >= len(s.slots) {
		return fmt.Errorf("slot %d of %d", slot, len(s.slots))
	}
	s.slots[slot] = adapter{}
	return nil
}

// lora adds factor · B·(A·x) to the rows of sequences that name an adapter. A
// reads x, and B what A gave, as bf16 operands; what A gives and what is added
// are float32.
func (e *executable) lora(op *kernels.LoRA) {
	for _, q := range e.step.Seqs {
		if q.Adapter == 0 {
			continue
		}
		for i := int(q.First); i < int(q.First+q.Count); i++ {
			for n, m := range op.Adapters {
				s := m.(*adapters).slots[q.Adapter-1]
				if s.a == nil {
					continue
				}
				middle := make([]float32, s.a.out)
				for r, t := range multiply(s.a, e.row(op.In, i)) {
					middle[r] = num.Operand(float32(t)) // result, and operand
				}
				out := e.row(op.Out, i)[op.Columns[n]:]
				for o, y := range multiply(s.b, middle) {
					out[o] = float32(float64(out[o]) + y*float64(s.factor)) // result
				}
			}
		}
	}
}
