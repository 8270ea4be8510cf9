package kerneltest

import (
	"math/rand/v2"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// convolved is one convolution over the features of some sequences.
type convolved struct {
	channels, outputs, groups int
	window                    kernels.Window
	grids                     [][2]int // of each sequence: lines, and rows of a line
	bias, tokens              bool     // its places are the tokens of the step
}

// along is a window of one dimension.
func along(kernel, stride, dilation, before, after int) kernels.Window {
	return kernels.Window{Kernel: [2]int{kernel}, Stride: [2]int{stride}, Dilation: [2]int{dilation}, Before: [2]int{before}, After: [2]int{after}}
}

// square is one of two, the same in both.
func square(kernel, stride, dilation, before, after int) kernels.Window {
	return kernels.Window{Kernel: [2]int{kernel, kernel}, Stride: [2]int{stride, stride}, Dilation: [2]int{dilation, dilation},
		Before: [2]int{before, before}, After: [2]int{after, after}}
}

// convolutions have odd sizes, tails of every width of lanes, windows that stand
// over the edges, that leave rows over, and that see no row but zeros' neighbours,
// and sequences shorter than a window's reach.
var convolutions = []convolved{
	{channels: 1, outputs: 1, window: along(1, 1, 1, 0, 0), grids: [][2]int{{1, 1}}},
	{channels: 3, outputs: 17, window: along(3, 1, 1, 1, 1), grids: [][2]int{{1, 1}, {2, 1}, {40, 1}}, bias: true},
	{channels: 80, outputs: 48, window: along(3, 2, 1, 1, 1), grids: [][2]int{{50, 1}, {7, 1}, {1, 1}, {130, 1}}, bias: true, tokens: true},
	{channels: 1, outputs: 33, window: along(10, 5, 1, 0, 0), grids: [][2]int{{333, 1}, {10, 1}, {14, 1}}},
	{channels: 20, outputs: 40, window: along(4, 3, 2, 5, 1), grids: [][2]int{{9, 1}, {2, 1}, {31, 1}}, bias: true},
	{channels: 8, outputs: 16, window: along(5, 1, 1, 4, 0), grids: [][2]int{{6, 1}, {3, 1}}}, // causal
	{channels: 32, outputs: 32, groups: 4, window: along(6, 1, 1, 3, 2), grids: [][2]int{{20, 1}, {3, 1}}, bias: true},
	{channels: 36, outputs: 60, groups: 3, window: along(3, 2, 2, 2, 1), grids: [][2]int{{19, 1}, {8, 1}}}, // tiles of two groups
	{channels: 5, outputs: 10, groups: 5, window: along(3, 1, 1, 1, 1), grids: [][2]int{{12, 1}}, bias: true},
	{channels: 1, outputs: 1, groups: 1, window: along(7, 1, 1, 3, 3), grids: [][2]int{{70, 1}}, bias: true},
	{channels: 37, outputs: 37, groups: 37, window: along(31, 1, 1, 15, 15), grids: [][2]int{{64, 1}, {9, 1}}, bias: true},
	{channels: 130, outputs: 130, groups: 130, window: along(4, 2, 3, 9, 0), grids: [][2]int{{30, 1}, {1, 1}}},
	{channels: 3, outputs: 24, window: square(7, 7, 1, 0, 0), grids: [][2]int{{28, 35}, {7, 7}, {15, 20}}, bias: true, tokens: true},
	{channels: 1, outputs: 20, window: square(3, 2, 1, 1, 1), grids: [][2]int{{11, 8}, {1, 1}, {4, 80}}, bias: true},
	{channels: 6, outputs: 18, groups: 2, window: square(3, 1, 2, 2, 2), grids: [][2]int{{5, 6}, {1, 9}}, bias: true},
	{channels: 19, outputs: 19, groups: 19, window: square(3, 2, 1, 1, 1), grids: [][2]int{{9, 7}, {2, 1}}, bias: true},
	{channels: 16, outputs: 16, groups: 16, window: square(2, 1, 3, 2, 1), grids: [][2]int{{6, 5}}},
}

// step is the sequences from first to last as one step, their features by a seed
// that is their own, or by magnitude.
func (c *convolved) step(first, last int, abs bool) *kernels.Step {
	s := &kernels.Step{}
	for i := first; i < last; i++ {
		lines, line := c.grids[i][0], c.grids[i][1]
		count := 1
		if c.tokens {
			w := c.window.Full()
			count = ((lines+w.Before[0]+w.After[0]-w.Dilation[0]*(w.Kernel[0]-1)-1)/w.Stride[0] + 1) *
				((line+w.Before[1]+w.After[1]-w.Dilation[1]*(w.Kernel[1]-1)-1)/w.Stride[1] + 1)
		}
		s.Seqs = append(s.Seqs, kernels.Seq{First: int32(len(s.Tokens)), Count: int32(count), Context: int32(count), Frames: int32(lines * line), Line: int32(line)})
		for k := range count {
			s.Tokens, s.Positions = append(s.Tokens, 0), append(s.Positions, int32(k))
		}
		rng := rand.New(rand.NewPCG(uint64(i), 77))
		for range lines * line * c.channels {
			x := float32(rng.NormFloat64())
			if abs && x < 0 {
				x = -x
			}
			s.Features = append(s.Features, x)
		}
	}
	return s
}

// record is the program of a convolution.
func (c *convolved) record(s *scene, format kernels.Format) {
	in := s.p.New(kernels.Frames, c.channels)
	rows := kernels.Tokens
	if !c.tokens {
		rows = s.p.Over(kernels.Frames, c.window)
	}
	op := &kernels.Convolution{In: in, Out: s.p.New(rows, c.outputs), Window: c.window, Groups: c.groups,
		Weight: s.matrix(format, c.outputs, c.window.Taps()*c.channels/max(c.groups, 1))}
	if c.bias {
		op.Bias = s.vector(c.outputs, 0)
	}
	s.p.Do(&kernels.Features{Out: in})
	s.p.Do(op)
	s.p.Do(&kernels.Output{In: op.Out})
}

// towerFormats are those that convolutions have.
var towerFormats = []kernels.Format{kernels.FormatF32, kernels.FormatF16, kernels.FormatBF16}

// testConvolution compares every convolution with the reference, and its
// sequences alone with the same ones in company, to the bit.
func testConvolution(t *testing.T, b kernels.Backend) {
	for i, c := range convolutions {
		for _, format := range towerFormats {
			t.Run(name("%d/%v", i, format), func(t *testing.T) {
				s, r, a := newScene(t, b, uint64(i)), newScene(t, ref.New(), uint64(i)), newScene(t, ref.New(), uint64(i))
				a.abs = true
				all := c.step(0, len(c.grids), false)
				results := map[*scene][][]float32{}
				for _, scene := range []*scene{s, r, a} {
					c.record(scene, format)
					step := all
					if scene == a {
						step = c.step(0, len(c.grids), true)
					}
					results[scene], _ = run(t, scene.compile(limitsOf(all)), step)
				}
				tol := tolerance{sums: results[a], ofSum: 5e-6}
				if format == kernels.FormatBF16 {
					tol.ofSum, tol.rel = 1e-5, 1.0/256
				}
				tol.close(t, results[s], results[r])
				e := s.compile(limitsOf(all))
				var alone [][]float32
				for k := range c.grids {
					rows, _ := run(t, e, c.step(k, k+1, false))
					alone = append(alone, rows...)
				}
				same(t, "alone and in company", results[s], alone)
			})
		}
	}
}

// testManyWindows has more kinds of rows than a byte can count, and reads the last
// of them.
func testManyWindows(t *testing.T, b kernels.Backend) {
	const kinds, frames = 260, 400
	step := &kernels.Step{Tokens: []int32{0}, Positions: []int32{0}, Seqs: []kernels.Seq{{Count: 1, Context: 1, Frames: frames, Line: 1}}}
	for i := range frames {
		step.Features = append(step.Features, float32(i))
	}
	got, want, _ := against(t, b, 12, step, func(s *scene) {
		in := s.p.New(kernels.Frames, 1)
		s.p.Do(&kernels.Features{Out: in})
		w := s.matrix(kernels.FormatF32, 1, 1)
		for i := range kinds {
			window := along(1, 2+i, 1, 0, 0)
			rows := s.p.Over(kernels.Frames, window)
			if i < kinds-3 {
				continue
			}
			out := s.p.New(rows, 1)
			s.p.Do(&kernels.Convolution{In: in, Out: out, Window: window, Weight: w})
			s.p.Do(&kernels.Output{In: out})
		}
	})
	usual.close(t, got, want)
}

// tower records a way from features to tokens: two windows, of which the second has
// groups, rows that are neither between them, and a depthwise one over the tokens.
func (s *scene) tower(format kernels.Format) {
	const mel, hidden, wide = 20, 24, 5
	window := square(3, 2, 1, 1, 1)
	x := s.p.New(kernels.Frames, mel)
	s.p.Do(&kernels.Features{Out: x})
	rows := s.p.Over(kernels.Frames, window)
	y, act := s.p.New(rows, hidden), s.p.New(rows, hidden)
	s.p.Do(&kernels.Convolution{In: x, Out: y, Window: window, Weight: s.matrix(format, hidden, 9*mel), Bias: s.vector(hidden, 0)})
	s.p.Do(&kernels.Activate{In: y, Out: act, Kind: kernels.GELU})
	wider := s.p.New(rows, wide*16)
	s.p.Do(&kernels.Linear{In: act, Out: wider, Weights: []kernels.Weight{s.matrix(format, wide*16, hidden)}, Add: kernels.None})
	s.p.Do(&kernels.Norm{In: wider, Out: wider, Add: kernels.None, Weight: s.vector(wide*16, 1), Eps: 1e-5, Layer: true})
	tokens, mixed, pooled := s.p.New(kernels.Tokens, 40), s.p.New(kernels.Tokens, 40), s.p.New(kernels.Seqs, 40)
	s.p.Do(&kernels.Convolution{In: wider, Out: tokens, Window: window, Groups: 5, Weight: s.matrix(format, 40, 9*16), Bias: s.vector(40, 0)})
	s.p.Do(&kernels.Convolution{In: tokens, Out: mixed, Window: along(5, 1, 1, 2, 2), Groups: 40, Weight: s.matrix(format, 40, 5)})
	s.p.Do(&kernels.Scale{In: mixed, Gate: kernels.None, Add: tokens, Out: mixed})
	s.p.Do(&kernels.Pool{In: mixed, Out: pooled, Kind: kernels.PoolMean})
	s.p.Do(&kernels.Output{In: wider})
	s.p.Do(&kernels.Output{In: mixed})
	s.p.Do(&kernels.Output{In: pooled})
}

// towerStep is two sequences of 9 by 7 and of 5 by 2 frames: 3 by 2 and 2 by 1
// tokens.
func towerStep() *kernels.Step {
	step := &kernels.Step{Tokens: make([]int32, 8), Positions: []int32{0, 1, 2, 3, 4, 5, 0, 1}, Seqs: []kernels.Seq{
		{First: 0, Count: 6, Context: 6, Frames: 63, Line: 7}, {First: 6, Count: 2, Context: 2, Frames: 10, Line: 2}}}
	rng := rand.New(rand.NewPCG(3, 78))
	for range 73 * 20 {
		step.Features = append(step.Features, float32(rng.NormFloat64()))
	}
	return step
}

// testTower goes from features to tokens by way of rows that are neither, and
// gives steps whose features do not fit.
func testTower(t *testing.T, b kernels.Backend) {
	for _, format := range towerFormats {
		step := towerStep()
		got, want, ok := against(t, b, 40, step, func(s *scene) { s.tower(format) })
		if !ok {
			continue
		}
		tol := tolerance{abs: 2e-5, rel: 1e-4}
		if format == kernels.FormatBF16 {
			tol.abs = 5e-2 // operands between two bf16 numbers round to either
		}
		tol.close(t, got, want)
	}
	s := newScene(t, b, 40)
	s.tower(kernels.FormatF32)
	e := s.compile(limitsOf(towerStep()))
	var out kernels.Result
	f := func(what string, spoil func(*kernels.Step)) {
		t.Helper()
		step := towerStep()
		spoil(step)
		if err := e.Run(step, &out); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	f("a step without features", func(s *kernels.Step) { s.Features = nil })
	f("frames that are no whole lines", func(s *kernels.Step) { s.Seqs[0].Line = 8 })
	f("a sequence without frames", func(s *kernels.Step) { s.Seqs[1].Frames = 0 })
	f("other tokens than places", func(s *kernels.Step) { s.Seqs[0].Line = 1 })
	f("a sequence that is not whole", func(s *kernels.Step) { s.Seqs[1].Context = 9 })
	if err := e.Run(towerStep(), &out); err != nil {
		t.Fatalf("a good step after bad ones: %v", err)
	}
}

// equalConvolutions checks that two backends give the same bits.
func equalConvolutions(t *testing.T, a, b kernels.Backend) {
	t.Helper()
	for i, c := range convolutions {
		for _, format := range towerFormats {
			var results [2][][]float32
			for k, backend := range []kernels.Backend{a, b} {
				s := newScene(t, backend, uint64(i))
				c.record(s, format)
				step := c.step(0, len(c.grids), false)
				results[k], _ = run(t, s.compile(limitsOf(step)), step)
			}
			same(t, name("convolution %d as %v: %s and %s", i, format, a.Name(), b.Name()), results[0], results[1])
		}
	}
}
