package xpu

import (
	"fmt"
	"math"

	"roundhouse/kernels"
)

// gridWords is what the step has of a sequence for each convolution.
const gridWords = 6

func (e *executable) features(op *kernels.Features) {
	e.wrote(op.Out)
	e.launch("features", nil, e.all(op.Out), e.step, e.layout.features, e.value(op.Out))
}

// convolution gathers what the window sees at each place into a row, and multiplies the
// rows as a linear does. One in groups, whose matrices are small, sums by itself.
func (e *executable) convolution(op *kernels.Convolution) {
	w := op.Weight.(*weight)
	if w.format != kernels.FormatF32 && w.format != kernels.FormatF16 && w.format != kernels.FormatBF16 {
		e.err = fmt.Errorf("a convolution as %v: %w; there are float32, float16 and bfloat16", w.format, errUnsupported)
		return
	}
	e.wrote(op.Out)
	grids := e.layout.grids + len(e.convolutions)*gridWords*e.limits.Seqs
	e.convolutions = append(e.convolutions, op)
	f := op.Window.Full()
	channels, taps, rows := e.p.Width(op.In), f.Taps(), e.rowsOf(op.Out)
	vectors, bias := vector(op.Bias)
	if op.Groups > 1 {
		e.launch("convolve", nil, e.eachRow(w.out, op.Out), e.value(op.In), channels, e.step, grids, e.limits.Seqs, f.Kernel[0], f.Kernel[1],
			f.Stride[0], f.Stride[1], f.Dilation[0], f.Dilation[1], f.Before[0], f.Before[1],
			w.arena, w.base, int32(w.format), op.Groups, vectors, bias, e.value(op.Out))
		return
	}
	most := e.limit(e.p.Values[op.Out].Rows)
	seen := e.lend(most * taps * channels)
	e.launch("gather_rows", nil, func(c counts) []uintptr { return dims(channels, taps, rows(c)) },
		e.value(op.In), channels, e.step, grids, e.limits.Seqs, f.Kernel[1],
		f.Stride[0], f.Stride[1], f.Dilation[0], f.Dilation[1], f.Before[0], f.Before[1], seen)
	x := e.packRows(kernels.None, seen, taps*channels, most, rows, w)
	e.multiply(product{w: w, x: x, rows: rows, vectors: vectors, bias: bias, out: e.value(op.Out), stride: w.out, scale: 1})
	e.unpack(x)
	e.done(seen)
}

// fillFeatures writes the features of a step, and the grids of its sequences, where the
// kernels read them.
func (e *executable) fillFeatures(s *kernels.Step) {
	for i, x := range s.Features {
		e.words[e.layout.features+i] = int32(math.Float32bits(x))
	}
	for n, op := range e.convolutions {
		rows := e.p.Values[op.In].Rows
		in, places := e.grids.Of(rows), e.grids.Places(rows, op.Window)
		for i := range e.limits.Seqs {
			to := e.words[e.layout.grids+(n*e.limits.Seqs+i)*gridWords:][:gridWords]
			if i >= len(s.Seqs) {
				to[3] = math.MaxInt32
				continue
			}
			to[0], to[1], to[2] = int32(in[i].First), int32(in[i].Lines), int32(in[i].Line)
			to[3], to[4], to[5] = int32(places[i].First), int32(places[i].Lines), int32(places[i].Line)
		}
	}
}
