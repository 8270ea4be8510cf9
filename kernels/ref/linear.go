package ref

import (
	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

func (e *executable) linear(op *kernels.Linear) {
	for i := range e.count(op.In) {
		in, out := e.row(op.In, i), e.row(op.Out, i)
		var add []float32
		if op.Add != kernels.None {
			add = e.row(op.Add, i)
		}
		first := 0
		for n, m := range op.Weights {
			w := m.(*weight)
			y := multiply(w, in)
			for o := range y {
				r := float64(y[o]) * float64(one(op.Scale))
				if len(op.Biases) > 0 && op.Biases[n] != nil {
					r += op.Biases[n].(*weight).values[o]
				}
				if add != nil {
					r += float64(add[first+o])
				}
				out[first+o] = float32(r) // result
			}
			first += w.out
		}
	}
}

// multiply is W·x for one row, x rounded to the operand of W's format. Sums of
// float formats are exact to float64 here; those of integer formats are
// float32 with bits that every backend must have.
func multiply(w *weight, x []float32) []float64 {
	if w.values == nil {
		return multiplyInteger(w, x)
	}
	a := make([]float64, w.in)
	for k, v := range x {
		a[k] = float64(operand(w.format, v))
	}
	y := make([]float64, w.out)
	for o := range y {
		for k, v := range a {
			y[o] += v * w.values[o*w.in+k]
		}
	}
	return y
}

// operand rounds an activation to what a format reads.
func operand(format kernels.Format, x float32) float32 {
	switch format {
	case kernels.FormatBF16, kernels.FormatFP8, kernels.FormatMXFP4:
		return num.Operand(x)
	}
	return x
}

// multiplyInteger sums code · q exactly over each 128 columns, then
//
//	y = y + float32(sum) · (scale of x · scale of W)   in float32, ascending
//
// or over each 32 columns of them where a weight has scales for fewer than 128,
// where a weight with one scale a row has it taken out of the sum, and applied
// at the end.
func multiplyInteger(w *weight, x []float32) []float64 {
	if w.order != nil {
		sorted := make([]float32, len(x))
		for k, c := range w.order {
			sorted[k] = x[c]
		}
		x = sorted
	}
	q := make([]int8, w.in)
	scales := make([]float32, (w.in+num.Group-1)/num.Group)
	for g := range scales {
		end := min((g+1)*num.Group, w.in)
		scales[g], _ = num.QuantiseRow(q[g*num.Group:end], x[g*num.Group:end])
	}
	perRow := w.format == kernels.FormatInt8
	y := make([]float64, w.out)
	for o := range y {
		var sum float32
		for g, s := range scales {
			if w.group < num.Group && !perRow {
				sum = w.addParts(sum, q, s, o, g)
				continue
			}
			var exact int32
			for k := g * num.Group; k < min((g+1)*num.Group, w.in); k++ {
				exact += int32(q[k]) * w.codes[o*w.in+k]
			}
			if !perRow {
				s *= w.scales[(o*w.in+g*num.Group)/w.group]
			}
			sum += float32(float32(exact) * s)
		}
		if perRow {
			sum *= w.scales[o]
		}
		y[o] = float64(sum)
	}
	return y
}

// addParts adds 128 columns to y in parts of 32: the first and the third, then
// the second and the fourth, as nibbles lie side by side.
func (w *weight) addParts(y float32, q []int8, s float32, o, g int) float32 {
	for _, part := range []int{0, 2, 1, 3} {
		first := g*num.Group + 32*part
		if first >= w.in {
			continue
		}
		var exact int32
		for k := first; k < first+32; k++ {
			exact += int32(q[k]) * w.codes[o*w.in+k]
		}
		y += float32(float32(exact) * (s * w.scales[(o*w.in+first)/w.group]))
	}
	return y
}
