package ref

import (
	"errors"
	"fmt"

	"roundhouse/kernels"
)

// checkConvolutions refuses weights whose bits would not be those of a linear
// over floats.
func checkConvolutions(p *kernels.Program) error {
	for i, op := range p.Ops {
		if c, ok := op.(*kernels.Convolution); ok {
			switch format := c.Weight.(*weight).format; format {
			case kernels.FormatF32, kernels.FormatF16, kernels.FormatBF16:
			default:
				return fmt.Errorf("operation %d: a convolution as %v: %w", i, format, errors.ErrUnsupported)
			}
		}
	}
	return nil
}

// features copies what the step brings.
func (e *executable) features(op *kernels.Features) {
	copy(e.values[op.Out], e.step.Features)
}

// convolution sums, for each place of the window and each output, over the taps
// that lie within the grid. Rows are read as operands of the weight's format.
func (e *executable) convolution(op *kernels.Convolution) {
	in, w := e.p.Values[op.In], op.Window.Full()
	grids := e.grids.Of(in.Rows)
	for s, places := range e.grids.Places(in.Rows, w) {
		for y := range places.Lines {
			for x := range places.Line {
				e.place(op, w, grids[s], y, x, e.row(op.Out, places.First+y*places.Line+x))
			}
		}
	}
}

// place is one row of the result.
func (e *executable) place(op *kernels.Convolution, w kernels.Window, g kernels.Grid, y, x int, out []float32) {
	m := op.Weight.(*weight)
	groups := max(op.Groups, 1)
	channels, outputs := e.p.Width(op.In)/groups, len(out)/groups
	for o := range out {
		var sum float64
		for i := range w.Kernel[0] {
			for j := range w.Kernel[1] {
				line, at := y*w.Stride[0]-w.Before[0]+i*w.Dilation[0], x*w.Stride[1]-w.Before[1]+j*w.Dilation[1]
				if line < 0 || line >= g.Lines || at < 0 || at >= g.Line {
					continue
				}
				row := e.row(op.In, g.First+line*g.Line+at)[o/outputs*channels:]
				for c, v := range m.values[o*m.in+(i*w.Kernel[1]+j)*channels:][:channels] {
					sum += float64(operand(m.format, row[c])) * v
				}
			}
		}
		if op.Bias != nil {
			sum += op.Bias.(*weight).values[o]
		}
		out[o] = float32(sum) // result
	}
}
