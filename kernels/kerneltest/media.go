package kerneltest

import (
	"math"
	"testing"

	"roundhouse/kernels"
)

// testAxes turns pairs by positions on axes of their own, beside a rotation that
// has one position, and without positions on axes.
func testAxes(t *testing.T, b kernels.Backend) {
	f := func(op kernels.RoPE, axes []int32) {
		t.Helper()
		for i := range op.Axes {
			op.InvFreq = append(op.InvFreq, math.Pow(10000, -2*float64(i)/float64(2*len(op.Axes))))
		}
		step := rows(4)
		copy(step.Positions, []int32{5, 90, 0, 70_000})
		step.Axes = axes
		got, want, _ := against(t, b, 12, step, func(s *scene) {
			op := op
			op.X = s.random(4, op.First+op.Heads*op.HeadDim+3)
			s.p.Do(&op)
			other := op // the same frequencies by one position
			other.Axes, other.X = nil, s.random(4, op.First+op.Heads*op.HeadDim)
			s.p.Do(&other)
			s.p.Do(&kernels.Output{In: op.X})
			s.p.Do(&kernels.Output{In: other.X})
		})
		usual.close(t, got, want)
	}
	places := []int32{5, 6, 7, 90, 3, 2, 0, 0, 0, 70_000, 70_001, 131_071}
	f(kernels.RoPE{Heads: 3, HeadDim: 16, First: 5, Axes: []uint8{0, 0, 1, 1, 1, 2, 2, 2}}, places)
	f(kernels.RoPE{Heads: 3, HeadDim: 16, First: 5, Axes: []uint8{0, 0, 1, 1, 1, 2, 2, 2}}, nil)
	f(kernels.RoPE{Heads: 2, HeadDim: 20, Axes: []uint8{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}}, places)
	f(kernels.RoPE{Heads: 2, HeadDim: 12, Rotary: 8, Start: 2, Interleaved: true, Axes: []uint8{2, 1, 0, 2}}, places)
}

// testSlices computes a program at once, and in two whose rows the host carries
// from the one to the other, as towers run: the bits are the same.
func testSlices(t *testing.T, b kernels.Backend) {
	const n, width = 9, 32
	part := func(s *scene, x kernels.Tensor) {
		y := s.p.New(kernels.Tokens, 3*width)
		mixed := s.p.New(kernels.Tokens, width)
		s.p.Do(&kernels.Linear{In: x, Out: y, Add: kernels.None, Weights: []kernels.Weight{s.matrix(kernels.FormatF32, 3*width, width)}})
		s.p.Do(&kernels.Attention{Q: y, K: y, V: y, KFirst: width, VFirst: 2 * width, Out: mixed, Bidirectional: true,
			Heads: 2, KVHeads: 2, KeyDim: width / 2, ValueDim: width / 2, Scale: 0.25})
		s.p.Do(&kernels.Scale{In: mixed, Gate: kernels.None, Add: x, Out: x})
	}
	step := rows(n)
	step.Seqs = []kernels.Seq{{First: 0, Count: 4, Context: 4}, {First: 4, Count: 5, Context: 5}}
	limits := limitsOf(step)
	limits.Shared = true
	step.Features = newScene(t, b, 15).normal(n*width, 1)
	begin := func(s *scene) kernels.Tensor {
		x := s.p.New(kernels.Tokens, width)
		s.p.Do(&kernels.Features{Out: x})
		return x
	}
	compile := func(s *scene, x kernels.Tensor) kernels.Executable {
		s.p.Do(&kernels.Output{In: x})
		return s.compile(limits)
	}
	both := newScene(t, b, 16)
	x := begin(both)
	part(both, x)
	part(both, x)
	whole := compile(both, x)
	one := newScene(t, b, 16)
	x = begin(one)
	part(one, x)
	first := compile(one, x)
	two := &scene{t: t, b: b, rng: one.rng, p: &kernels.Program{}}
	x = begin(two)
	part(two, x)
	second := compile(two, x)
	want, _ := run(t, whole, step)
	got, _ := run(t, first, step)
	next := *step
	next.Features = nil
	for _, row := range got {
		next.Features = append(next.Features, row...)
	}
	got, _ = run(t, second, &next)
	same(t, "two slices", got, want)
	next.Features = next.Features[1:]
	if err := second.Run(&next, new(kernels.Result)); err == nil {
		t.Error("a step that lacks a feature was accepted")
	}
}

// testPlace puts rows of media in place of tokens, and adds them, in steps with
// and without media.
func testPlace(t *testing.T, b kernels.Backend) {
	const n, width = 7, 33
	s, rng := newScene(t, b, 13), newScene(t, b, 14)
	x, y := s.random(n, width), s.random(n, width)
	s.p.Do(&kernels.Place{X: x, Width: 2 * width})
	s.p.Do(&kernels.Place{X: y, Width: 2 * width, First: width - 2, Add: true})
	s.p.Do(&kernels.Output{In: x})
	s.p.Do(&kernels.Output{In: y})
	e := s.compile(kernels.Limits{Tokens: n, Seqs: n})
	plain, _ := run(t, e, rows(n))
	media, step := rng.normal(3*2*width, 1), rows(n)
	step.Media, step.MediaRow = media, []int32{-1, 2, 0, -1, -1, 0, -1}
	got, _ := run(t, e, step)
	want := make([][]float32, 2*n)
	for i := range want {
		want[i] = append([]float32(nil), plain[i]...)
		from := step.MediaRow[i%n]
		for k := range want[i] {
			switch {
			case from < 0:
			case i < n:
				want[i][k] = media[int(from)*2*width+k]
			default:
				want[i][k] += media[int(from)*2*width+width-2+k]
			}
		}
	}
	same(t, "media placed", got, want)
	again, _ := run(t, e, rows(n))
	same(t, "a step without media behind one with some", again, plain)

	var out kernels.Result
	f := func(what string, spoil func(*kernels.Step)) {
		t.Helper()
		step := rows(n)
		step.Media, step.MediaRow = media, []int32{-1, 2, 0, -1, -1, 0, -1}
		spoil(step)
		if err := e.Run(step, &out); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	f("a row of media that is not there", func(s *kernels.Step) { s.MediaRow[3] = 3 })
	f("a row below none", func(s *kernels.Step) { s.MediaRow[3] = -2 })
	f("half a row of media", func(s *kernels.Step) { s.Media = s.Media[:2*width+1] })
	f("media for some tokens", func(s *kernels.Step) { s.MediaRow = s.MediaRow[:3] })
	f("more media than tokens", func(s *kernels.Step) { s.Media = make([]float32, 2*width*(n+1)) })
	f("axes for some tokens", func(s *kernels.Step) { s.Axes = []int32{1, 2, 3} })
}
