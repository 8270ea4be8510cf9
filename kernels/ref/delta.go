package ref

import (
	"math"

	"roundhouse/kernels"
)

// delta runs the gated delta rule over each sequence. A short causal
// convolution with SiLU comes first; then, token by token and for each value
// head, with q and k of unit length and q divided by √KeyDim:
//
//	g = exp(-exp(ALog) · softplus(a + DtBias))      how much memory stays
//	S = g · S
//	S = S + k ⊗ (sigmoid(b) · (v - Sᵀ·k))           S is (KeyDim, ValueDim)
//	out = Sᵀ·q
func (e *executable) delta(op *kernels.Delta) {
	c := op.KV.(*kv)
	channels, taps := op.Conv.Shape()
	for _, q := range e.step.Seqs {
		size := c.spec.StateBytes / 4
		state := c.state[(op.Layer*c.spec.Blocks+int(q.Blocks[op.Group][0]))*size:][:size]
		if q.Context == q.Count {
			clear(state)
		}
		past, memory := state[:(taps-1)*channels], state[(taps-1)*channels:]
		for i := range int(q.Count) {
			row := int(q.First) + i
			x := convolve(op, past, e.row(op.QKV, row)[:channels])
			for h := range op.ValueHeads {
				e.deltaHead(op, memory, x, row, h)
			}
		}
	}
}

// convolve is SiLU of the convolution that ends at x, and shifts x into the past.
func convolve(op *kernels.Delta, past, x []float32) []float64 {
	w := op.Conv.(*weight)
	y := make([]float64, len(x))
	for c := range x {
		for t := range w.in - 1 {
			y[c] += float64(past[t*len(x)+c]) * w.values[c*w.in+t]
		}
		y[c] += float64(x[c]) * w.values[c*w.in+w.in-1]
		y[c] = float64(float32(activation(kernels.SiLU, y[c]))) // result
	}
	if w.in > 1 {
		copy(past, past[len(x):])
		copy(past[(w.in-2)*len(x):], x)
	}
	return y
}

func (e *executable) deltaHead(op *kernels.Delta, memory []float32, x []float64, row, h int) {
	keyHead := h / (op.ValueHeads / op.KeyHeads)
	width := op.KeyHeads * op.KeyDim
	q := unit(x[keyHead*op.KeyDim:][:op.KeyDim])
	k := unit(x[width+keyHead*op.KeyDim:][:op.KeyDim])
	v := x[2*width+h*op.ValueDim:][:op.ValueDim]

	gates := e.row(op.Gates, row)
	beta := sigmoid(float64(gates[h]))
	a := float64(gates[op.ValueHeads+h]) + op.DtBias.(*weight).values[h]
	g := math.Exp(-math.Exp(op.ALog.(*weight).values[h]) * softplus(a))

	s := memory[h*op.KeyDim*op.ValueDim:][:op.KeyDim*op.ValueDim]
	out := e.row(op.Out, row)[h*op.ValueDim:][:op.ValueDim]
	for j := range v {
		var read float64
		for i := range k {
			read += g * float64(s[i*op.ValueDim+j]) * k[i]
		}
		learn := beta * (v[j] - read)
		var y float64
		for i := range k {
			n := float32(g*float64(s[i*op.ValueDim+j]) + k[i]*learn) // result: the memory is float32
			s[i*op.ValueDim+j] = n
			y += float64(n) * q[i] / math.Sqrt(float64(op.KeyDim))
		}
		out[j] = float32(y)
	}
}

// unit is x / √(Σx² + 1e-6).
func unit(x []float64) []float64 {
	square := 1e-6
	for _, v := range x {
		square += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(square)
	}
	return y
}

func softplus(x float64) float64 {
	if x > 20 {
		return x
	}
	return math.Log1p(math.Exp(x))
}
