package kernels_test

import (
	"strings"
	"testing"

	"roundhouse/kernels"
)

// shaped is a weight that is its shape alone.
type shaped [2]int

func (s shaped) Shape() (out, in int) { return s[0], s[1] }
func (shaped) Bytes() int64           { return 0 }

// pair is a window with the same figure for both dimensions.
func pair(n int) [2]int { return [2]int{n, n} }

// What is wrong with a convolution is said with what was found.
func TestCheckConvolution(t *testing.T) {
	f := func(want string, spoil func(p *kernels.Program, op *kernels.Convolution)) {
		t.Helper()
		p := &kernels.Program{}
		in := p.New(kernels.Frames, 12)
		p.Do(&kernels.Features{Out: in})
		w := kernels.Window{Kernel: pair(3), Stride: pair(2), Before: pair(1), After: pair(1)}
		op := &kernels.Convolution{In: in, Out: p.New(p.Over(kernels.Frames, w), 8), Window: w, Groups: 4, Weight: shaped{8, 27}, Bias: shaped{8, 1}}
		spoil(p, op)
		p.Do(op)
		err := kernels.Check(p)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	type program = kernels.Program
	type convolution = kernels.Convolution
	f("", func(*program, *convolution) {})
	f("", func(p *program, op *convolution) { op.Out = p.New(kernels.Tokens, 8) })
	f("Weight is missing", func(_ *program, op *convolution) { op.Weight = nil })
	f("Weight has shape (8, 27); want (8, 108)", func(_ *program, op *convolution) { op.Groups = 0 })
	f("Bias has shape (1, 1); want (8, 1)", func(_ *program, op *convolution) { op.Bias = shaped{1, 1} })
	f("12 channels and 8 outputs in 5 groups", func(_ *program, op *convolution) { op.Groups = 5 })
	f("12 channels and 8 outputs in -1 groups", func(_ *program, op *convolution) { op.Groups = -1 })
	f("nothing of it may be below 0", func(_ *program, op *convolution) { op.Window.Stride[0] = -1 })
	f("a window of 3 taps, 1 apart, with 2 and 1 zeros beside; at most 2 would keep", func(_ *program, op *convolution) { op.Window.Before[1] = 2 })
	f("In and Out are the same", func(_ *program, op *convolution) { op.Out = op.In })
	f("Out has 8 columns and rows of kind 4; want 8 and 5", func(_ *program, op *convolution) { op.Window.Stride[1] = 3 })
	f("Out has 8 columns and rows of kind 4; want 8 and 3", func(_ *program, op *convolution) { op.Window.Stride = pair(1) })
	f("rows of kind 1, which are no grid", func(p *program, op *convolution) {
		picked := p.New(kernels.Sampled, 12)
		p.Do(&kernels.Embed{Out: p.New(kernels.Tokens, 12), Table: shaped{1, 12}})
		p.Do(&kernels.Pick{In: 3, Out: picked})
		op.In = picked
	})
	f("a window of two dimensions over tokens", func(p *program, op *convolution) {
		op.In = p.New(kernels.Tokens, 12)
		p.Do(&kernels.Embed{Out: op.In, Table: shaped{1, 12}})
	})
	f("features of 12 and of 5 columns", func(p *program, _ *convolution) { p.Do(&kernels.Features{Out: p.New(kernels.Frames, 5)}) })
	f("value 2 has rows of kind 9 of 5", func(p *program, _ *convolution) { p.New(9, 3) })
	f("rows of kind 5 are made of kind 2", func(p *program, _ *convolution) {
		p.Over(kernels.Seqs, kernels.Window{Stride: pair(2)})
	})
}

// A window makes the same kind of rows each time it is asked, and none where it
// keeps their number.
func TestOver(t *testing.T) {
	p := &kernels.Program{}
	half := kernels.Window{Kernel: [2]int{3}, Stride: [2]int{2}, Before: [2]int{1}, After: [2]int{1}}
	first := p.Over(kernels.Frames, half)
	if again := p.Over(kernels.Frames, half.Full()); again != first || first <= kernels.Frames {
		t.Errorf("rows of kind %d, then %d", first, again)
	}
	if second := p.Over(first, half); second == first || p.Base(second) != kernels.Frames || p.Kinds() != int(second)+1 {
		t.Errorf("rows of kind %d of %d", second, p.Kinds())
	}
	if kept := p.Over(kernels.Tokens, kernels.Window{Kernel: [2]int{5}, Dilation: [2]int{2}, Before: [2]int{8}}); kept != kernels.Tokens {
		t.Errorf("a causal window makes rows of kind %d of tokens", kept)
	}
	for i := range 1000 {
		made := p.Over(kernels.Frames, kernels.Window{Stride: [2]int{2 + i}})
		if int(made) != p.Kinds()-1 || p.Base(made) != kernels.Frames {
			t.Fatalf("after %d other windows the rows are of kind %d of %d", i, made, p.Kinds())
		}
	}
}

// Steps whose features do not fit are refused, with the sequence and its figures.
func TestGrids(t *testing.T) {
	p := &kernels.Program{}
	w := kernels.Window{Kernel: pair(3), Stride: pair(2)}
	in, out, mixed := p.New(kernels.Frames, 2), p.New(kernels.Tokens, 4), p.New(kernels.Tokens, 4)
	p.Do(&kernels.Features{Out: in})
	p.Do(&kernels.Convolution{In: in, Out: out, Window: w, Weight: shaped{4, 18}})
	p.Do(&kernels.Convolution{In: out, Out: mixed, Window: kernels.Window{Kernel: [2]int{3}, Before: [2]int{2}}, Groups: 4, Weight: shaped{4, 3}})
	if err := kernels.Check(p); err != nil {
		t.Fatal(err)
	}
	grids := kernels.NewGrids(p)
	f := func(want string, spoil func(s *kernels.Step)) {
		t.Helper()
		step := &kernels.Step{Tokens: make([]int32, 7), Features: make([]float32, 2*(35+9)), Seqs: []kernels.Seq{
			{Count: 6, Context: 6, Frames: 35, Line: 5}, {First: 6, Count: 1, Context: 1, Frames: 9, Line: 3}}}
		spoil(step)
		err := grids.Fill(step, kernels.Limits{Tokens: 8, Seqs: 2, Frames: 50})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	f("", func(*kernels.Step) {})
	if g := grids.Places(kernels.Frames, w); g[0] != (kernels.Grid{First: 0, Lines: 3, Line: 2}) || g[1] != (kernels.Grid{First: 6, Lines: 1, Line: 1}) {
		t.Errorf("places %+v", g)
	}
	if n := grids.Count(kernels.Frames); n != 44 {
		t.Errorf("%d frames", n)
	}
	f("sequence 0 has 35 frames in lines of 4", func(s *kernels.Step) { s.Seqs[0].Line = 4 })
	f("sequence 1 has 0 frames", func(s *kernels.Step) { s.Seqs[1].Frames = 0 })
	f("44 frames with 80 features; want 2 for each", func(s *kernels.Step) { s.Features = s.Features[:80] })
	f("step of 53 frames; the limit is 50", func(s *kernels.Step) { s.Seqs[1].Frames = 18 })
	f("sequence 1 has 1 lines of 9 rows; a window of 3 by 3 taps, 1 and 1 apart, does not fit", func(s *kernels.Step) { s.Seqs[1].Line = 9 })
	f("sequence 0 has 5 tokens; convolutions make 6 of its 35 frames", func(s *kernels.Step) { s.Seqs[0].Count, s.Seqs[0].Context = 5, 5 })
	f("sequence 1 has 1 of its 4 tokens in this step", func(s *kernels.Step) { s.Seqs[1].Context = 4 })
	if err := kernels.NewGrids(&kernels.Program{}).Fill(&kernels.Step{Features: make([]float32, 3)}, kernels.Limits{}); err == nil {
		t.Error("features for a program that reads none were accepted")
	}
}
