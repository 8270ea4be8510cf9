package ref

import (
	"math"

	"roundhouse/kernels"
)

func (e *executable) rope(op *kernels.RoPE) {
	rotary := op.Rotary
	if rotary == 0 {
		rotary = op.HeadDim
	}
	for i, position := range e.step.Positions {
		row := e.row(op.X, i)
		for h := range op.Heads {
			head := row[op.First+h*op.HeadDim+op.Start:][:rotary]
			for f, frequency := range op.InvFreq {
				a, b := f, f+rotary/2
				if op.Interleaved {
					a, b = 2*f, 2*f+1
				}
				if op.Axes != nil && e.step.Axes != nil {
					position = e.step.Axes[3*i+int(op.Axes[f])]
				}
				sin, cos := math.Sincos(float64(position) * frequency)
				sin, cos = sin*float64(one(op.Scale)), cos*float64(one(op.Scale))
				x, y := float64(head[a]), float64(head[b])
				head[a] = float32(x*cos - y*sin)
				head[b] = float32(y*cos + x*sin)
			}
		}
	}
}

// attention writes the step's keys and values to their pages, for all
// sequences, and then attends from every row.
func (e *executable) attention(op *kernels.Attention) {
	for s, q := range e.step.Seqs {
		if op.Cross > 0 {
			e.keepFrames(op, q, e.grids.Of(kernels.Frames)[s])
			continue
		}
		for i := range int(q.Count) {
			e.keep(op, q, i)
		}
	}
	for _, q := range e.step.Seqs {
		for i := range int(q.Count) {
			for h := range op.Heads {
				e.attend(op, q, i, h)
			}
		}
	}
}

// keep writes row i of a sequence to its page.
func (e *executable) keep(op *kernels.Attention, q kernels.Seq, i int) {
	c, _ := op.KV.(*kv)
	if c == nil {
		return
	}
	e.keepRow(op, c, c.slot(op.Layer, q.Blocks[op.Group], int(q.Context-q.Count)+i), int(q.First)+i)
}

// keepRow writes a row of keys and values to a slot.
func (e *executable) keepRow(op *kernels.Attention, c *kv, slot, row int) {
	keys := e.row(op.K, row)[op.KFirst:][:op.KVHeads*op.KeyDim]
	c.keep(c.keys[slot*op.KeyDim:], keys, op.KeyDim)
	if op.V == kernels.None {
		return
	}
	vals := e.row(op.V, row)[op.VFirst:][:op.KVHeads*op.ValueDim]
	c.keep(c.vals[slot*op.ValueDim:], vals, op.ValueDim)
}

// keepFrames writes the frames of a sequence to its block.
func (e *executable) keepFrames(op *kernels.Attention, q kernels.Seq, g kernels.Grid) {
	c := op.KV.(*kv)
	for i := range g.Rows() {
		e.keepRow(op, c, c.slot(op.Layer, q.Blocks[op.Group], i), g.First+i)
	}
}

// entry is the key and value that KV head h of a sequence has for a token.
func (e *executable) entry(op *kernels.Attention, q kernels.Seq, h, token int) (key, value []float32) {
	if c, _ := op.KV.(*kv); c != nil {
		slot := c.slot(op.Layer, q.Blocks[op.Group], token) + h
		key = c.keys[slot*op.KeyDim:][:op.KeyDim]
		if op.V == kernels.None {
			return key, key[:op.ValueDim]
		}
		return key, c.vals[slot*op.ValueDim:][:op.ValueDim]
	}
	i := int(q.First) + token
	return e.row(op.K, i)[op.KFirst+h*op.KeyDim:][:op.KeyDim], e.row(op.V, i)[op.VFirst+h*op.ValueDim:][:op.ValueDim]
}

// attend computes head h of row i: softmax(q·kᵀ · Scale) · v over the tokens
// that the row sees.
func (e *executable) attend(op *kernels.Attention, q kernels.Seq, i, h int) {
	self := int(q.Context-q.Count) + i
	first, last := 0, self
	if op.Bidirectional {
		last = int(q.Context) - 1
	}
	if op.Cross > 0 {
		last = op.Cross - 1
	}
	if op.Window > 0 {
		first = max(0, self-op.Window+1)
		if op.Bidirectional {
			last = min(last, self+op.Window-1)
		}
	}
	query := e.row(op.Q, int(q.First)+i)[op.QFirst+h*op.KeyDim:][:op.KeyDim]
	group := h / (op.Heads / op.KVHeads)

	scores := make([]float64, last-first+1)
	most := math.Inf(-1)
	if op.Sinks != nil {
		most = op.Sinks.(*weight).values[h]
	}
	for t := range scores {
		key, _ := e.entry(op, q, group, first+t)
		for k, x := range key {
			scores[t] += float64(query[k]) * float64(x)
		}
		scores[t] *= float64(op.Scale)
		if op.SoftCap > 0 {
			scores[t] = float64(op.SoftCap) * math.Tanh(scores[t]/float64(op.SoftCap))
		}
		most = max(most, scores[t])
	}
	var total float64
	if op.Sinks != nil {
		total = math.Exp(op.Sinks.(*weight).values[h] - most)
	}
	sum := make([]float64, op.ValueDim)
	for t, s := range scores {
		p := math.Exp(s - most)
		total += p
		_, value := e.entry(op, q, group, first+t)
		for k, x := range value {
			sum[k] += p * float64(x)
		}
	}
	out := e.row(op.Out, int(q.First)+i)[h*op.ValueDim:][:op.ValueDim]
	for k := range out {
		out[k] = float32(sum[k] / total)
	}
}
