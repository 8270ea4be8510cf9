package measure

import (
	"fmt"

	"roundhouse/kernels"
)

// towerTimes is how often a convolution stands in a program.
const towerTimes = 4

// frames is the second convolution of Whisper, which halves the frames, with a quarter of
// the columns of a matrix as channels.
func frames(b kernels.Backend, o Options) (Figures, error) {
	s, w := newScene(b), o.Size/4
	x := s.rows(w, 2*o.Rows)
	window := kernels.Window{Kernel: [2]int{3}, Stride: [2]int{2}, Before: [2]int{1}, After: [2]int{1}}
	y := s.p.New(s.p.Over(kernels.Tokens, window), w)
	op := &kernels.Convolution{In: x, Out: y, Window: window, Weight: s.weight(numbers(w, 3*w), kernels.FormatBF16)}
	for range towerTimes {
		s.p.Do(op)
	}
	s.p.Do(&kernels.Output{In: y})
	n := int64(o.Rows) * int64(w)
	f := Figures{Name: fmt.Sprintf("convolution bfloat16, %d frames to %d", 2*o.Rows, o.Rows), Kind: Towers, Bytes: 12*n + 6*int64(w)*int64(w), Flops: 6 * n * int64(w)}
	return s.timeStep(f, step(2*o.Rows, 2*o.Rows), towerTimes, o)
}

// patches is how a vision tower begins: squares of 14 by 14 pixels of three colours.
func patches(b kernels.Backend, o Options) (Figures, error) {
	const side, colours = 14, 3
	s, w := newScene(b), o.Size/4
	x, y := s.p.New(kernels.Frames, colours), s.p.New(kernels.Tokens, w)
	window := kernels.Window{Kernel: [2]int{side, side}, Stride: [2]int{side, side}}
	op := &kernels.Convolution{In: x, Out: y, Window: window, Weight: s.weight(numbers(w, colours*side*side), kernels.FormatBF16)}
	s.p.Do(&kernels.Features{Out: x})
	for range towerTimes {
		s.p.Do(op)
	}
	st := step(o.Rows, o.Rows)
	st.Seqs[0].Frames, st.Seqs[0].Line = int32(o.Rows*side*side), side
	st.Features = make([]float32, o.Rows*side*side*colours)
	n := int64(o.Rows) * colours * side * side
	f := Figures{Name: fmt.Sprintf("patches bfloat16, %d of %d by %d", o.Rows, side, side), Kind: Towers,
		Bytes: 4*n + 4*int64(o.Rows)*int64(w) + 2*colours*side*side*int64(w), Flops: 2 * n * int64(w)}
	out := s.p.New(kernels.Sampled, w)
	s.p.Do(&kernels.Pick{In: y, Out: out})
	s.p.Do(&kernels.Output{In: out})
	return s.timeStep(f, st, towerTimes, o)
}

// depthwise is what stands in a layer of Conformer.
func depthwise(b kernels.Backend, o Options) (Figures, error) {
	const taps = 31
	s, w := newScene(b), o.Size/4
	x, y := s.rows(w, o.Rows), s.p.New(kernels.Tokens, w)
	window := kernels.Window{Kernel: [2]int{taps}, Before: [2]int{taps / 2}, After: [2]int{taps / 2}}
	op := &kernels.Convolution{In: x, Out: y, Window: window, Groups: w, Weight: s.weight(numbers(w, taps), kernels.FormatBF16)}
	for range towerTimes {
		s.p.Do(op)
	}
	n := int64(o.Rows) * int64(w)
	return s.time(Figures{Name: fmt.Sprintf("depthwise bfloat16, %d rows", o.Rows), Kind: Towers, Bytes: 8 * n, Flops: 2 * taps * n}, y, o.Rows, towerTimes, o)
}
