package cpu

import (
	"math"

	"roundhouse/kernels"
)

// delta adds the stage of the gated delta rule; package ref has the recurrence.
// A sequence is one thread's, since each token needs the one before it, and
// each value head is on its own.
func (pl *plan) delta(op *kernels.Delta) {
	x := pl.x
	d := &delta{Delta: op, x: x, cache: op.KV.(*kv), queue: &queue{}}
	x.queues = append(x.queues, d.queue)
	d.channels, d.taps = op.Conv.Shape()
	d.taps0 = make([]float32, d.channels*d.taps)
	for c := range d.channels {
		for t := range d.taps {
			d.taps0[t*d.channels+c] = op.Conv.(*weight).at(c, t)
		}
	}
	mixed := pl.buffer(x.limits.Tokens * d.channels * 4)
	state, ok := pl.pages[d.cache]
	if !ok {
		state = pl.buffer(0)
		pl.buffers[state].fixed = true
		pl.pages[d.cache] = state
	}
	pl.stage(stage{reads: operand(op.QKV), writes: []int{mixed, state}, run: func(thread int) {
		d.queue.take(x.counts[kernels.Seqs], 1, func(first, _ int) {
			d.convolve(first, floats(x.buffers[mixed].memory))
		})
	}})
	heads := &queue{}
	x.queues = append(x.queues, heads)
	pl.stage(stage{reads: append(operand(op.Gates), mixed), writes: append(operand(op.Out), state), run: func(thread int) {
		heads.take(x.counts[kernels.Seqs]*op.ValueHeads, 1, func(i, _ int) {
			d.head(i/op.ValueHeads, i%op.ValueHeads, floats(x.buffers[mixed].memory))
		})
	}})
}

type delta struct {
	*kernels.Delta
	x              *executable
	cache          *kv
	queue          *queue
	channels, taps int
	taps0          []float32 // (taps, channels)
}

// state is a sequence's last inputs and its memory.
func (d *delta) state(seq int) (past, memory []float32) {
	size := d.cache.spec.StateBytes / 4
	block := int(d.x.step.Seqs[seq].Blocks[d.Group][0])
	s := d.cache.state[(d.Layer*d.cache.spec.Blocks+block)*size:][:size]
	n := (d.taps - 1) * d.channels
	return s[:n], s[n:]
}

// convolve runs the short convolution over a sequence.
func (d *delta) convolve(seq int, mixed []float32) {
	q := &d.x.step.Seqs[seq]
	past, memory := d.state(seq)
	if q.Context == q.Count {
		clear(past)
		clear(memory)
	}
	for i := q.First; i < q.First+q.Count; i++ {
		in := d.x.row(d.QKV, int(i))[:d.channels]
		out := mixed[int(i)*d.channels:][:d.channels]
		for c, v := range in {
			var sum float32
			for t := range d.taps - 1 {
				sum += float32(past[t*d.channels+c] * d.taps0[t*d.channels+c])
			}
			sum += float32(v * d.taps0[(d.taps-1)*d.channels+c])
			out[c] = silu(sum)
		}
		if d.taps > 1 {
			copy(past, past[d.channels:])
			copy(past[(d.taps-2)*d.channels:], in)
		}
	}
}

// head runs one value head over a sequence.
func (d *delta) head(seq, h int, mixed []float32) {
	q := &d.x.step.Seqs[seq]
	_, memory := d.state(seq)
	s := memory[h*d.KeyDim*d.ValueDim:][:d.KeyDim*d.ValueDim]
	width, keyHead := d.KeyHeads*d.KeyDim, h/(d.ValueHeads/d.KeyHeads)
	decay := -math.Exp(float64(d.ALog.(*weight).vector[h]))
	bias := float64(d.DtBias.(*weight).vector[h])
	for i := int(q.First); i < int(q.First+q.Count); i++ {
		row := mixed[i*d.channels:][:d.channels]
		query, key := row[keyHead*d.KeyDim:][:d.KeyDim], row[width+keyHead*d.KeyDim:][:d.KeyDim]
		gates := d.x.row(d.Gates, i)
		g := float32(math.Exp(decay * softplus(float64(gates[d.ValueHeads+h])+bias)))
		d.recur(s, query, key, row[2*width+h*d.ValueDim:][:d.ValueDim],
			d.x.row(d.Out, i)[h*d.ValueDim:][:d.ValueDim], g, sigmoid(gates[h]))
	}
}

// recur is one token: S fades by g, learns v at k by beta, and is read at q.
func (d *delta) recur(s, query, key, v, out []float32, g, beta float32) {
	l := d.x.level
	qScale := inverseLength(l, query) / math.Sqrt(float64(d.KeyDim))
	kScale := float32(inverseLength(l, key))
	clear(out)
	for i, k := range key { // out is what the memory reads at k, for now
		row := s[i*d.ValueDim:][:d.ValueDim]
		k *= kScale
		for j := range row {
			row[j] *= g
			out[j] += float32(row[j] * k)
		}
	}
	for j, read := range out {
		out[j] = (v[j] - read) * beta
	}
	learn := out
	for i, k := range key {
		row := s[i*d.ValueDim:][:d.ValueDim]
		k *= kScale
		for j, x := range learn {
			row[j] += float32(k * x)
		}
	}
	clear(out)
	for i, y := range query {
		row := s[i*d.ValueDim:][:d.ValueDim]
		y *= float32(qScale)
		for j, m := range row {
			out[j] += float32(m * y)
		}
	}
}

// inverseLength is 1 / √(Σx² + 1e-6).
func inverseLength(l *level, x []float32) float64 {
	return 1 / math.Sqrt(float64(l.sumSquares(x))+1e-6)
}

func softplus(x float64) float64 {
	if x > 20 {
		return x
	}
	return math.Log1p(math.Exp(x))
}
