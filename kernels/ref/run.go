package ref

import (
	"fmt"
	"math"

	"roundhouse/kernels"
)

// executable runs a program operation by operation.
type executable struct {
	p      *kernels.Program
	limits kernels.Limits
	grids  *kernels.Grids
	step   *kernels.Step
	values [][]float32 // by Tensor: (rows, width)
}

// Run implements kernels.Executable.
func (e *executable) Run(step *kernels.Step, out *kernels.Result) error {
	if err := e.limits.CheckStep(e.p, step); err != nil {
		return err
	}
	if err := e.grids.Fill(step, e.limits); err != nil {
		return err
	}
	e.step = step
	e.values = make([][]float32, len(e.p.Values))
	for i, v := range e.p.Values {
		e.values[i] = make([]float32, e.rows(v.Rows)*v.Width)
	}
	*out = kernels.Result{}
	for _, op := range e.p.Ops {
		e.do(op, out)
	}
	return nil
}

func (e *executable) rows(kind kernels.Rows) int {
	switch kind {
	case kernels.Sampled:
		return len(e.step.Rows)
	case kernels.Seqs:
		return len(e.step.Seqs)
	case kernels.Tokens:
		return len(e.step.Tokens)
	}
	return e.grids.Count(kind)
}

// count is the number of rows of t.
func (e *executable) count(t kernels.Tensor) int { return e.rows(e.p.Values[t].Rows) }

// row is row i of t.
func (e *executable) row(t kernels.Tensor, i int) []float32 {
	w := e.p.Width(t)
	return e.values[t][i*w : (i+1)*w]
}

func (e *executable) do(op kernels.Op, out *kernels.Result) {
	switch op := op.(type) {
	case *kernels.Embed:
		e.embed(op)
	case *kernels.Norm:
		e.norm(op)
	case *kernels.Linear:
		e.linear(op)
	case *kernels.RoPE:
		e.rope(op)
	case *kernels.Attention:
		e.attention(op)
	case *kernels.Activate:
		e.activate(op)
	case *kernels.MoE:
		e.moe(op)
	case *kernels.Scale:
		e.scale(op)
	case *kernels.Delta:
		e.delta(op)
	case *kernels.LoRA:
		e.lora(op)
	case *kernels.Features:
		e.features(op)
	case *kernels.Convolution:
		e.convolution(op)
	case *kernels.Columns:
		for i := range e.count(op.Out) {
			copy(e.row(op.Out, i), e.row(op.In, i)[op.First:])
		}
	case *kernels.Place:
		e.placeMedia(op)
	case *kernels.Pick:
		for i, r := range e.step.Rows {
			copy(e.row(op.Out, i), e.row(op.In, int(r)))
		}
	case *kernels.Pool:
		e.pool(op)
	case *kernels.Sample:
		e.sample(op, out)
	case *kernels.Output:
		for i := range e.count(op.In) {
			out.Output = append(out.Output, e.row(op.In, i))
		}
	default:
		panic(fmt.Sprintf("BUG: operation %T passed the check", op))
	}
}

func (e *executable) placeMedia(op *kernels.Place) {
	for i, from := range e.step.MediaRow {
		if from < 0 {
			continue
		}
		row := e.row(op.X, i)
		media := e.step.Media[int(from)*op.Width+op.First:]
		for k := range row {
			if op.Add {
				row[k] += media[k]
			} else {
				row[k] = media[k]
			}
		}
	}
}

func (e *executable) embed(op *kernels.Embed) {
	table := op.Table.(*weight)
	for i := range e.step.Tokens {
		var id int32
		switch op.IDs {
		case kernels.TokenIDs:
			id = e.step.Tokens[i]
		case kernels.PositionIDs:
			id = e.step.Positions[i]
		case kernels.TypeIDs:
			if e.step.Types != nil {
				id = e.step.Types[i]
			}
		}
		row := e.row(op.Out, i)
		for k := range row {
			row[k] = float32(table.at(int(id), k)) * one(op.Scale)
		}
	}
}

// one is x, where 0 means 1.
func one(x float32) float32 {
	if x == 0 {
		return 1
	}
	return x
}

func (e *executable) norm(op *kernels.Norm) {
	width := op.Width
	if width == 0 {
		width = e.p.Width(op.In)
	}
	count := op.Count
	if count == 0 {
		count = (e.p.Width(op.In) - op.First) / width
	}
	for i := range e.count(op.In) {
		in, out := e.row(op.In, i), e.row(op.Out, i)
		if op.Add != kernels.None {
			sum := e.row(op.Add, i)
			for k := range sum {
				sum[k] += in[k] // result: the residual stream is float32
			}
			in = sum
		}
		copy(out, in)
		for g := range count {
			at := op.First + g*width
			normalise(op, out[at:at+width])
		}
	}
}

// normalise computes one group in place.
func normalise(op *kernels.Norm, x []float32) {
	var mean, square float64
	if op.Layer {
		for _, v := range x {
			mean += float64(v)
		}
		mean /= float64(len(x))
	}
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	scale := 1 / math.Sqrt(square/float64(len(x))+float64(op.Eps))
	for k, v := range x {
		y := (float64(v) - mean) * scale
		if op.Weight != nil {
			y *= op.Weight.(*weight).values[k] + float64(op.Offset)
		}
		if op.Bias != nil {
			y += op.Bias.(*weight).values[k]
		}
		x[k] = float32(y)
	}
}

func (e *executable) activate(op *kernels.Activate) {
	for i := range e.count(op.In) {
		in, out := e.row(op.In, i), e.row(op.Out, i)
		for k := range out {
			if op.Up {
				out[k] = float32(gated(op.Kind, float64(in[k]), float64(in[len(out)+k]), float64(op.Limit)))
			} else {
				out[k] = float32(activation(op.Kind, float64(in[k])))
			}
		}
	}
}

func (e *executable) scale(op *kernels.Scale) {
	for i := range e.count(op.In) {
		in, out := e.row(op.In, i), e.row(op.Out, i)
		for k := range out {
			y := float64(in[k]) * float64(one(op.Factor))
			if op.Gate != kernels.None {
				gate := e.row(op.Gate, i)
				y *= activation(op.Kind, float64(gate[k%len(gate)]))
			}
			if op.Add != kernels.None {
				y += float64(e.row(op.Add, i)[k])
			}
			out[k] = float32(y)
		}
	}
}

func (e *executable) pool(op *kernels.Pool) {
	for s, q := range e.step.Seqs {
		out := e.row(op.Out, s)
		sum := make([]float64, len(out))
		first, last := int(q.First), int(q.First+q.Count-1)
		switch op.Kind {
		case kernels.PoolCLS:
			last = first
		case kernels.PoolLast:
			first = last
		}
		for i := first; i <= last; i++ {
			for k, v := range e.row(op.In, i) {
				sum[k] += float64(v)
			}
		}
		var square float64
		for k := range sum {
			sum[k] /= float64(last - first + 1)
			square += sum[k] * sum[k]
		}
		for k := range out {
			if op.Normalise && square > 0 {
				sum[k] /= math.Sqrt(square)
			}
			out[k] = float32(sum[k])
		}
	}
}
