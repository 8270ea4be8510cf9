package kernels

import "fmt"

// MostRank is the greatest rank of an adapter.
const MostRank = 256

// Adapters is room for the low-rank corrections (LoRA) of one matrix (out, in).
// Each of its slots holds an A (rank, in), a B (out, rank), both in bf16, and
// a factor; or nothing, as all do at first.
type Adapters interface {
	Shape() (out, in int)
	Slots() int
	Rank() int // that a slot has room for
	Bytes() int64

	// Set fills a slot, between two steps. A and B are as files have them:
	// a.Out is the rank, and so is b.In. Clear empties it again.
	Set(slot int, a, b Source, factor float32) error
	Clear(slot int) error
}

// Adapting is a backend that has the operation LoRA.
type Adapting interface {
	// Adapters sets room aside for a matrix (out, in).
	Adapters(out, in, slots, rank int) (Adapters, error)
}

// LoRA adds to each row whose sequence names an adapter (Seq.Adapter) what that
// one makes of In, for several matrices whose outputs stand side by side in
// Out: Out += factor · B·(A·In). Other rows stay as they are, and so do the
// columns of a matrix whose slot is empty.
type LoRA struct {
	In, Out  Tensor // (Tokens, in), (Tokens, …)
	Adapters []Adapters
	Columns  []int // of Out, where each one's outputs begin
}

func (*LoRA) op() {}

// CheckRoom refuses sizes that no Adapters could be made for.
func CheckRoom(out, in, slots, rank int) error {
	if out < 1 || in < 1 || slots < 1 || rank < 1 || rank > MostRank {
		return fmt.Errorf("adapters of rank %d in %d slots for a matrix (%d, %d); ranks are 1 to %d", rank, slots, out, in, MostRank)
	}
	return nil
}

// CheckAdapter returns the fault of a pair of matrices for a slot, nil if there
// is none.
func CheckAdapter(to Adapters, slot int, a, b Source) error {
	out, in := to.Shape()
	switch {
	case slot < 0 || slot >= to.Slots():
		return fmt.Errorf("slot %d of %d", slot, to.Slots())
	case a.Out < 1 || a.Out > to.Rank():
		return fmt.Errorf("%s has rank %d; there is room for %d", a.Name, a.Out, to.Rank())
	case a.In != in:
		return fmt.Errorf("%s has shape (%d, %d); want %d columns", a.Name, a.Out, a.In, in)
	case b.Out != out || b.In != a.Out:
		return fmt.Errorf("%s has shape (%d, %d); want (%d, %d)", b.Name, b.Out, b.In, out, a.Out)
	}
	for _, src := range []Source{a, b} {
		elements, bytes := src.Type.Block()
		if src.In%elements != 0 || len(src.Data) != src.Out*src.In/elements*bytes {
			return fmt.Errorf("%s has %d bytes for (%d, %d) of %v", src.Name, len(src.Data), src.Out, src.In, src.Type)
		}
	}
	return nil
}

// AdapterSlots is how many adapters the sequences of a step may name: the least
// number of slots of its operations; 0 where it has no LoRA.
func (p *Program) AdapterSlots() int {
	slots, found := 0, false
	for _, op := range p.Ops {
		if l, ok := op.(*LoRA); ok {
			for _, a := range l.Adapters {
				if !found || a.Slots() < slots {
					slots, found = a.Slots(), true
				}
			}
		}
	}
	return slots
}

func (c *checker) lora(op *LoRA) {
	in := c.tokens(op.In)
	out := c.reads(op.Out, "Out", 1)
	if c.err != nil {
		return
	}
	if out.Rows != Tokens || op.In == op.Out || len(op.Adapters) == 0 || len(op.Columns) != len(op.Adapters) {
		c.fail("%d adapters at %d columns of value %d, from value %d; Out must have a row for each token, and not be In", len(op.Adapters), len(op.Columns), op.Out, op.In)
		return
	}
	for i, a := range op.Adapters {
		if a == nil {
			c.fail("Adapters[%d] is missing", i)
			return
		}
		n, k := a.Shape()
		first := op.Columns[i]
		if k != in.Width || first < 0 || first+n > out.Width || i > 0 && first < op.Columns[i-1] {
			c.fail("Adapters[%d] is (%d, %d) at column %d; In has %d columns and Out %d", i, n, k, first, in.Width, out.Width)
		}
	}
	c.writes(op.Out, "Out", Tokens, out.Width)
}
