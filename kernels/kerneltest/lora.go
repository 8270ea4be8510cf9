package kerneltest

import (
	"encoding/binary"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
	"roundhouse/kernels/ref"
)

// room is adapters for a matrix, or nothing where a backend has none.
func (s *scene) room(out, in, slots, rank int) kernels.Adapters {
	s.t.Helper()
	b, ok := s.b.(kernels.Adapting)
	if !ok {
		s.missing = true
		return nil
	}
	a, err := b.Adapters(out, in, slots, rank)
	if err != nil {
		s.t.Fatalf("%s: %v", s.b.Name(), err)
	}
	return a
}

// coarse is n numbers that are multiples of unit, few bits each: sums of their
// products are exact in float32, so that every backend rounds them alike.
func (s *scene) coarse(n int, unit float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(s.rng.IntN(15)-7) * unit
	}
	return x
}

// halves is a source stored as bf16, at an odd address.
func halves(name string, out, in int, x []float32) kernels.Source {
	data := make([]byte, 1, 1+2*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint16(data, num.BF16(v))
	}
	return kernels.Source{Name: name, Out: out, In: in, Type: kernels.BF16, Data: data[1:]}
}

// adapt fills a slot with a random adapter.
func (s *scene) adapt(a kernels.Adapters, slot, rank int, factor float32) {
	s.t.Helper()
	if s.missing {
		return
	}
	out, in := a.Shape()
	down := halves("A", rank, in, s.coarse(rank*in, 1.0/16))
	up := source("B", out, rank, s.normal(out*rank, 0.5))
	if err := a.Set(slot, down, up, factor); err != nil {
		s.t.Fatalf("%s: %v", s.b.Name(), err)
	}
}

// mixed is a step of sequences with the counts and adapters given, in turn.
func mixed(pairs ...[2]int) *kernels.Step {
	step := &kernels.Step{}
	for _, p := range pairs {
		q := kernels.Seq{First: int32(len(step.Tokens)), Count: int32(p[0]), Context: int32(p[0]), Adapter: int32(p[1])}
		for i := range p[0] {
			step.Tokens = append(step.Tokens, int32(len(step.Tokens)))
			step.Positions = append(step.Positions, int32(i))
		}
		step.Seqs = append(step.Seqs, q)
	}
	return step
}

// testLoRA has adapters of every rank side by side in one step, over parts of a
// value, beside rows that have none; and the same rows in other company.
func testLoRA(t *testing.T, b kernels.Backend) {
	for _, c := range []struct {
		in    int
		outs  []int
		rank  int // of the room
		ranks []int
	}{
		{1, []int{1}, 1, []int{1}},
		{33, []int{17, 5}, 3, []int{3, 1, 2}},
		{128, []int{130, 16, 47}, 16, []int{16, 8, 5, 16}},
		{300, []int{256}, 64, []int{33, 64, 17}},
		{640, []int{300, 31}, 256, []int{256, 16}},
	} {
		step := mixed([2]int{1, 1}, [2]int{3, 0}, [2]int{1, 1}, [2]int{40, 2 % (len(c.ranks) + 1)}, [2]int{1, len(c.ranks)}, [2]int{2, len(c.ranks)}, [2]int{70, 1}, [2]int{1, 0})
		compareLoRA(t, b, step, c.in, c.outs, c.rank, c.ranks)
	}
	testLoRACompany(t, b)
	testLoRASlots(t, b)
}

// adapted is a program of a linear's output, taken as input, and a LoRA of it.
// Parts stand side by side from column 3 on, with a gap of one between them.
func (s *scene) adapted(rows, in int, outs []int, slots, rank int) (*kernels.LoRA, kernels.Tensor) {
	s.t.Helper()
	width := 4
	for _, out := range outs {
		width += out + 1
	}
	op := &kernels.LoRA{In: s.input(s.coarse(rows*in, 1.0/8), in)}
	y := s.random(rows, width)
	op.Out = s.p.New(kernels.Tokens, width)
	s.p.Do(&kernels.Columns{In: y, Out: op.Out})
	at := 3
	for _, out := range outs {
		op.Adapters, op.Columns = append(op.Adapters, s.room(out, in, slots, rank)), append(op.Columns, at)
		at += out + 1
	}
	s.p.Do(op)
	s.p.Do(&kernels.Output{In: op.Out})
	return op, op.Out
}

func compareLoRA(t *testing.T, b kernels.Backend, step *kernels.Step, in int, outs []int, rank int, ranks []int) {
	t.Helper()
	build := func(s *scene) {
		op, _ := s.adapted(len(step.Tokens), in, outs, len(ranks), rank)
		for slot, r := range ranks {
			for i, a := range op.Adapters {
				if i == 1 && slot == 1 {
					continue // this adapter leaves this matrix alone
				}
				s.adapt(a, slot, r, []float32{2, 0.5, 1, 0.3}[slot])
			}
		}
	}
	got, want, ok := against(t, b, uint64(in), step, build)
	if !ok {
		return
	}
	// What A gives is exact, and its rounding; what B adds up is of some tens.
	tolerance{abs: 1e-4, rel: 1e-5}.close(t, got, want)
}

// companions is a program of two matrices with two adapters of random numbers,
// for steps of up to so many rows; ok is false where the backend has none.
func companions(t *testing.T, b kernels.Backend, most int) (e kernels.Executable, ok bool) {
	t.Helper()
	const in, rank = 200, 24
	s := newScene(t, b, 41)
	op := &kernels.LoRA{In: s.random(most, in)}
	y := s.random(most, 150)
	op.Out = s.p.New(kernels.Tokens, 150)
	s.p.Do(&kernels.Columns{In: y, Out: op.Out})
	for i, out := range []int{90, 60} {
		a := s.room(out, in, 2, rank)
		s.adapt(a, 0, 24, 0.7)
		s.adapt(a, 1, 9, 1.3)
		op.Adapters, op.Columns = append(op.Adapters, a), append(op.Columns, 90*i)
	}
	if s.missing {
		return nil, false
	}
	s.p.Do(op)
	s.p.Do(&kernels.Output{In: op.Out})
	return s.compile(kernels.Limits{Tokens: most, Seqs: most}), true
}

// company is a step of rows with both adapters and with none.
func company() *kernels.Step {
	return mixed([2]int{40, 1}, [2]int{35, 2}, [2]int{1, 1}, [2]int{1, 2}, [2]int{19, 0})
}

// equalLoRA checks that two backends give the same bits.
func equalLoRA(t *testing.T, a, b kernels.Backend) {
	t.Helper()
	m, okA := companions(t, a, 96)
	n, okB := companions(t, b, 96)
	if okA && okB {
		got, _ := run(t, m, company())
		want, _ := run(t, n, company())
		same(t, name("LoRA: %s and %s", a.Name(), b.Name()), got, want)
	}
}

// testLoRACompany checks that a row gets the same bits whoever else is in the
// step.
func testLoRACompany(t *testing.T, b kernels.Backend) {
	e, ok := companions(t, b, 96)
	if !ok {
		return
	}
	whole, _ := run(t, e, company())
	f := func(what string, first int, pairs ...[2]int) {
		t.Helper()
		step := mixed(pairs...)
		for i := range step.Tokens {
			step.Tokens[i] += int32(first)
		}
		got, _ := run(t, e, step)
		same(t, what, got, whole[first:first+len(got)])
	}
	for i := 0; i < 40; i += 13 {
		f("a row alone", i, [2]int{1, 1})
	}
	f("two sequences of one adapter", 0, [2]int{17, 1}, [2]int{23, 1}, [2]int{3, 2})
	f("cut elsewhere", 5, [2]int{35, 1}, [2]int{1, 2}, [2]int{34, 2}, [2]int{1, 1}, [2]int{1, 2}, [2]int{3, 0})
}

// testLoRASlots fills slots anew, empties them, and refuses what does not fit.
func testLoRASlots(t *testing.T, b kernels.Backend) {
	const in, out = 64, 48
	step := mixed([2]int{2, 1}, [2]int{2, 2})
	var results [2][][]float32
	for i, backend := range []kernels.Backend{b, ref.New()} {
		s := newScene(t, backend, 42)
		op, _ := s.adapted(4, in, []int{out}, 2, 32)
		if s.missing {
			return
		}
		e, a := s.compile(limitsOf(step)), op.Adapters[0]
		again := func() {
			got, _ := run(t, e, step)
			results[i] = append(results[i], got...)
		}
		again() // all slots are empty
		s.adapt(a, 0, 32, 1)
		s.adapt(a, 1, 20, 2)
		again()
		s.adapt(a, 0, 7, 1) // of the 32 nothing is left
		if err := a.Clear(1); err != nil {
			t.Fatal(err)
		}
		again()
		refuse := func(what string, err error) {
			t.Helper()
			if err == nil {
				t.Fatalf("%s: %s was accepted", backend.Name(), what)
			}
		}
		x := make([]float32, 64*64)
		refuse("a rank beyond the room", a.Set(0, halves("A", 33, in, x[:33*in]), halves("B", out, 33, x[:out*33]), 1))
		refuse("a slot beyond the last", a.Set(2, halves("A", 1, in, x[:in]), halves("B", out, 1, x[:out]), 1))
		refuse("a B of another matrix", a.Set(0, halves("A", 1, in, x[:in]), halves("B", out+1, 1, x[:out+1]), 1))
		refuse("an A of another matrix", a.Set(0, halves("A", 1, in+1, x[:in+1]), halves("B", out, 1, x[:out]), 1))
		refuse("an A that is cut short", a.Set(0, halves("A", 2, in, x[:in]), halves("B", out, 2, x[:2*out]), 1))
		var r kernels.Result
		refuse("a sequence of a third adapter", e.Run(mixed([2]int{1, 3}), &r))
		again()
	}
	tolerance{abs: 1e-5, rel: 1e-5}.close(t, results[0], results[1])
	if len(results[0]) != 16 {
		t.Fatalf("%d rows; want 16", len(results[0]))
	}
	same(t, "after what was refused", results[0][12:], results[0][8:12])
}
