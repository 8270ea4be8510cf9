package cpu

import (
	"math"
	"slices"

	"roundhouse/kernels"
)

func (x *executable) embed(op *kernels.Embed, first, last int) {
	table, ids := op.Table.(*weight), x.ids(op.IDs, x.step)
	scale := one(op.Scale)
	for i := first; i < last; i++ {
		id := 0
		if ids != nil {
			id = int(ids[i])
		}
		row := x.row(op.Out, i)
		table.read(row, id)
		if scale != 1 {
			for k := range row {
				row[k] *= scale
			}
		}
	}
}

func (x *executable) place(op *kernels.Place, first, last int) {
	if x.step.MediaRow == nil {
		return
	}
	for i, from := range x.step.MediaRow[first:last] {
		if from < 0 {
			continue
		}
		row := x.row(op.X, first+i)
		media := x.step.Media[int(from)*op.Width+op.First:][:len(row)]
		if op.Add {
			x.isa.add(row, media)
		} else {
			copy(row, media)
		}
	}
}

// norm adds the stage of a Norm, with its weight as the factor of each column.
func (pl *plan) norm(op *kernels.Norm) {
	x := pl.x
	width := op.Width
	if width == 0 {
		width = x.p.Width(op.In)
	}
	count := op.Count
	if count == 0 {
		count = (x.p.Width(op.In) - op.First) / width
	}
	factors := make([]float32, width)
	for k := range factors {
		factors[k] = 1
		if op.Weight != nil {
			factors[k] = op.Weight.(*weight).vector[k] + op.Offset
		}
	}
	biases := make([]float32, width)
	if op.Bias != nil {
		biases = op.Bias.(*weight).vector
	}
	writes := operand(op.Out, op.Add)
	pl.rowwise(x.p.Values[op.In].Rows, operand(op.In, op.Add), writes, func(first, last int) {
		for i := first; i < last; i++ {
			in, out := x.row(op.In, i), x.row(op.Out, i)
			if op.Add != kernels.None {
				sum := x.row(op.Add, i)
				x.isa.add(sum, in)
				in = sum
			}
			if &in[0] != &out[0] && count*width < len(in) {
				copy(out, in)
			}
			for at := op.First; at < op.First+count*width; at += width {
				x.normalise(op, out[at:at+width], in[at:at+width], factors, biases)
			}
		}
	})
}

// normalise computes one group: out = f(in).
func (x *executable) normalise(op *kernels.Norm, out, in, factors, biases []float32) {
	if op.Layer {
		x.isa.layerNorm(op, out, in, factors, biases)
		return
	}
	square := float64(x.isa.sumSquares(in))
	x.isa.normalise(out, in, factors, float32(1/math.Sqrt(square/float64(len(in))+float64(op.Eps))))
}

func (x *executable) activate(op *kernels.Activate, first, last int) {
	for i := first; i < last; i++ {
		in, out := x.row(op.In, i), x.row(op.Out, i)
		if op.Up {
			x.gate(op.Kind, op.Limit, out, in[:len(out)], in[len(out):])
			continue
		}
		if op.Kind == kernels.GELU {
			x.isa.gelu(out, in)
			continue
		}
		for k, v := range in {
			out[k] = activation(op.Kind, v)
		}
	}
}

// gate is out = activation(gate) · up.
func (x *executable) gate(kind kernels.Activation, limit float32, out, gate, up []float32) {
	if kind == kernels.SiLU && limit == 0 {
		x.isa.siluMul(out, gate, up)
		return
	}
	if kind == kernels.GELUTanh && limit == 0 {
		x.isa.geluMul(out, gate, up)
		return
	}
	for k := range out {
		out[k] = gated(kind, gate[k], up[k], limit)
	}
}

func (x *executable) scale(op *kernels.Scale, first, last int) {
	factor := one(op.Factor)
	for i := first; i < last; i++ {
		in, out := x.row(op.In, i), x.row(op.Out, i)
		var gate, add []float32
		if op.Gate != kernels.None {
			gate = x.row(op.Gate, i)
		}
		if op.Add != kernels.None {
			add = x.row(op.Add, i)
		}
		g := float32(1)
		if len(gate) == 1 {
			g = activation(op.Kind, gate[0])
		}
		for k, v := range in {
			if len(gate) > 1 {
				g = activation(op.Kind, gate[k])
			}
			y := float32(float32(v*factor) * g)
			if add != nil {
				y += add[k]
			}
			out[k] = y
		}
	}
}

func (x *executable) pool(op *kernels.Pool, first, last int) {
	for s := first; s < last; s++ {
		q, out := &x.step.Seqs[s], x.row(op.Out, s)
		begin, end := int(q.First), int(q.First+q.Count-1)
		switch op.Kind {
		case kernels.PoolCLS:
			end = begin
		case kernels.PoolLast:
			begin = end
		}
		copy(out, x.row(op.In, begin))
		for i := begin + 1; i <= end; i++ {
			x.isa.add(out, x.row(op.In, i))
		}
		scale := 1 / float64(end-begin+1)
		if op.Normalise {
			if square := float64(x.isa.sumSquares(out)); square > 0 {
				scale = 1 / math.Sqrt(square)
			}
		}
		for k := range out {
			out[k] = float32(float64(out[k]) * scale)
		}
	}
}

// output brings the rows of a value back to the caller.
func (pl *plan) output(op *kernels.Output) {
	x := pl.x
	kind := x.p.Values[op.In].Rows
	// The value stays as it is until the step ends.
	pl.keep = append(pl.keep, int(op.In))
	x.outputs = slices.Grow(x.outputs, x.limit(kind))
	x.results = append(x.results, func() {
		for i := range x.counts[kind] {
			x.outputs = append(x.outputs, x.row(op.In, i))
		}
	})
}

// ropeTable is the sines and cosines of a step, shared by all operations that
// turn alike.
type ropeTable struct {
	op     *kernels.RoPE
	buffer int
}

// rope adds the stages of a RoPE: the table, if no other has made it, and the
// turn.
func (pl *plan) rope(op *kernels.RoPE) {
	x := pl.x
	half := len(op.InvFreq)
	i := slices.IndexFunc(pl.tables, func(t ropeTable) bool {
		return slices.Equal(t.op.InvFreq, op.InvFreq) && slices.Equal(t.op.Axes, op.Axes) && t.op.Scale == op.Scale
	})
	if i < 0 {
		i = len(pl.tables)
		pl.tables = append(pl.tables, ropeTable{op, pl.buffer(x.limits.Tokens * half * 8)})
		buffer := pl.tables[i].buffer
		pl.rowwise(kernels.Tokens, nil, []int{buffer}, func(first, last int) {
			table := floats(x.buffers[buffer].memory)
			for i := first; i < last; i++ {
				turn(table[i*2*half:][:2*half], op, x.step, i)
			}
		})
	}
	buffer := pl.tables[i].buffer
	pl.rowwise(kernels.Tokens, append(operand(op.X), buffer), operand(op.X), func(first, last int) {
		table := floats(x.buffers[buffer].memory)
		for i := first; i < last; i++ {
			row, t := x.row(op.X, i), table[i*2*half:][:2*half]
			for h := range op.Heads {
				rotate(op, row[op.First+h*op.HeadDim+op.Start:][:2*half], t)
			}
		}
	})
}

// turn computes cosines and then sines of one row's position.
func turn(table []float32, op *kernels.RoPE, step *kernels.Step, row int) {
	half, scale := len(op.InvFreq), float64(one(op.Scale))
	position := step.Positions[row]
	for f, frequency := range op.InvFreq {
		if op.Axes != nil && step.Axes != nil {
			position = step.Axes[3*row+int(op.Axes[f])]
		}
		sin, cos := math.Sincos(float64(position) * frequency)
		table[f], table[half+f] = float32(cos*scale), float32(sin*scale)
	}
}

// rotate turns the pairs of one head.
func rotate(op *kernels.RoPE, head, table []float32) {
	half := len(table) / 2
	cos, sin := table[:half], table[half:]
	if op.Interleaved {
		for f, c := range cos {
			a, b := head[2*f], head[2*f+1]
			head[2*f] = float32(a*c) - float32(b*sin[f])
			head[2*f+1] = float32(b*c) + float32(a*sin[f])
		}
		return
	}
	low, high := head[:half], head[half:]
	for f, c := range cos {
		a, b, s := low[f], high[f], sin[f]
		low[f] = float32(a*c) - float32(b*s)
		high[f] = float32(b*c) + float32(a*s)
	}
}
