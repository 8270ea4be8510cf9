package cpu

import (
	"math"
	"slices"
	"unsafe"

	"roundhouse/kernels"
)

// delta adds the stages of the gated delta rule; package ref has the recurrence.
// Rows are convolved by all threads. Then each value head of a sequence is one
// thread's, since each token needs the one before it.
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
	d.ones = make([]float32, max(d.channels, 1024))
	for i := range d.ones {
		d.ones[i] = 1
	}
	mixed := pl.buffer(x.limits.Tokens * d.channels * 4)
	state, ok := pl.pages[d.cache]
	if !ok {
		state = pl.buffer(0)
		pl.buffers[state].fixed = true
		pl.pages[d.cache] = state
	}
	pl.stage(stage{reads: append(operand(op.QKV), state), writes: []int{mixed}, run: func(thread int) {
		d.queue.take(x.counts[kernels.Tokens], 8, func(first, last int) {
			for i := first; i < last; i++ {
				d.convolve(i, floats(x.buffers[mixed].memory)[i*d.channels:][:d.channels])
			}
		})
	}})
	heads := &queue{}
	x.queues = append(x.queues, heads)
	pl.stage(stage{reads: append(operand(op.Gates, op.QKV), mixed), writes: append(operand(op.Out), state), run: func(thread int) {
		heads.take(x.counts[kernels.Seqs]*op.ValueHeads, 1, func(i, _ int) {
			seq, h := i/op.ValueHeads, i%op.ValueHeads
			d.head(&x.scratch[thread], seq, h, floats(x.buffers[mixed].memory))
			if h == 0 {
				d.pass(seq)
			}
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
	ones           []float32
}

// state is a sequence's last inputs and its memory.
func (d *delta) state(seq int) (past, memory []float32) {
	size := d.cache.spec.StateBytes / 4
	block := int(d.x.step.Seqs[seq].Blocks[d.Group][0])
	s := d.cache.state[(d.Layer*d.cache.spec.Blocks+block)*size:][:size]
	n := (d.taps - 1) * d.channels
	return s[:n], s[n:]
}

// convolve is the short convolution of a row with SiLU. Its queries and keys are
// then of unit length, queries divided by √KeyDim.
func (d *delta) convolve(row int, out []float32) {
	l, seq := d.x.isa, d.x.seqOf(row)
	q := &d.x.step.Seqs[seq]
	past, _ := d.state(seq)
	clear(out)
	for t := range d.taps {
		from := row - d.taps + 1 + t
		var in []float32
		switch {
		case from >= int(q.First):
			in = d.x.row(d.QKV, from)[:d.channels]
		case q.Context > q.Count:
			in = past[(from-int(q.First)+d.taps-1)*d.channels:][:d.channels]
		default:
			continue // the sequence begins here
		}
		l.slide(out, in, d.taps0[t*d.channels:][:d.channels], 1, 0)
	}
	l.siluMul(out, out, d.ones[:d.channels])
	for h := range 2 * d.KeyHeads {
		head := out[h*d.KeyDim:][:d.KeyDim]
		scale := inverseLength(l, head)
		if h < d.KeyHeads {
			scale /= math.Sqrt(float64(d.KeyDim))
		}
		l.normalise(head, head, d.ones, float32(scale))
	}
}

// pass keeps the last inputs of a sequence for its next step.
func (d *delta) pass(seq int) {
	q := &d.x.step.Seqs[seq]
	past, _ := d.state(seq)
	keep, n := d.taps-1, int(q.Count)
	if n < keep {
		if q.Context == q.Count {
			clear(past)
		}
		copy(past, past[n*d.channels:])
	}
	for i := max(0, keep-n); i < keep; i++ {
		copy(past[i*d.channels:][:d.channels], d.x.row(d.QKV, int(q.First)+n-keep+i))
	}
}

// head runs one value head over a sequence.
func (d *delta) head(s *scratch, seq, h int, mixed []float32) {
	q := &d.x.step.Seqs[seq]
	_, memory := d.state(seq)
	memory = memory[h*d.KeyDim*d.ValueDim:][:d.KeyDim*d.ValueDim]
	if q.Context == q.Count {
		clear(memory)
	}
	width, keyHead := d.KeyHeads*d.KeyDim, h/(d.ValueHeads/d.KeyHeads)
	decay := -math.Exp(float64(d.ALog.(*weight).vector[h]))
	bias := float64(d.DtBias.(*weight).vector[h])
	first, end := int(q.First), int(q.First+q.Count)
	// What the memory reads at a token's key is read together with its answer to
	// the query before.
	read := s.read[:d.ValueDim]
	clear(read)
	keys := mixed[width+keyHead*d.KeyDim:]
	d.ask(s, memory, keys[first*d.channels:], 0, read, 0, 1)
	for i := first; i < end; i++ {
		gates, row, out := d.x.row(d.Gates, i), mixed[i*d.channels:], d.x.row(d.Out, i)[h*d.ValueDim:][:d.ValueDim]
		g, beta := float32(math.Exp(decay*softplus(float64(gates[d.ValueHeads+h])+bias))), sigmoid(gates[h])
		v := row[2*width+h*d.ValueDim:][:d.ValueDim]
		for j, r := range read {
			read[j] = (v[j] - float32(r*g)) * beta
		}
		d.learn(s, memory, keys[i*d.channels:][:d.KeyDim], read, g)
		answers := s.read[:2*d.ValueDim]
		clear(answers)
		query, rows := row[keyHead*d.KeyDim:], 1
		if i+1 < end {
			rows = 2
		}
		d.ask(s, memory, query, d.channels+width, answers, d.ValueDim, rows)
		copy(out, answers)
		copy(read, answers[d.ValueDim:])
	}
}

// ask adds Sᵀ·k for one vector k or two, which lie step numbers apart.
func (d *delta) ask(s *scratch, memory, k []float32, step int, y []float32, ys, rows int) {
	tiles := d.ValueDim / 16
	for tile := 0; tile < tiles; tile += 2 {
		d.x.isa.fuse(fusedF32, s.call(fused{y: unsafe.Pointer(&y[16*tile]), ys: uintptr(4 * ys), a: unsafe.Pointer(&k[0]), as: uintptr(4 * step),
			b: unsafe.Pointer(&memory[16*tile]), second: 64, bs: uintptr(4 * d.ValueDim), n: uintptr(d.KeyDim)}), rows, min(2, tiles-tile))
	}
	for j := 16 * tiles; j < d.ValueDim; j++ { // fewer columns than a tile
		for r := range rows {
			for i, x := range k[r*step:][:d.KeyDim] {
				y[r*ys+j] = fma(x, memory[i*d.ValueDim+j], y[r*ys+j])
			}
		}
	}
}

// learn is S = g · S + k ⊗ x.
func (d *delta) learn(s *scratch, memory, k, x []float32, g float32) {
	for some := range slices.Chunk(memory, 1024) { // so few ones stay in the cache
		d.x.isa.normalise(some, some, d.ones, g)
	}
	tiles := d.ValueDim / 16
	for tile := 0; tile < tiles; tile += 2 {
		d.x.isa.fuse(fusedF32, s.call(fused{y: unsafe.Pointer(&memory[16*tile]), ys: uintptr(4 * d.ValueDim), a: unsafe.Pointer(&k[0]), as: 4,
			b: unsafe.Pointer(&x[16*tile]), second: 64, n: 1}), d.KeyDim, min(2, tiles-tile))
	}
	for j := 16 * tiles; j < d.ValueDim; j++ {
		for i, y := range k {
			memory[i*d.ValueDim+j] = fma(y, x[j], memory[i*d.ValueDim+j])
		}
	}
}

// inverseLength is 1 / √(Σx² + 1e-6).
func inverseLength(l *isa, x []float32) float64 {
	return 1 / math.Sqrt(float64(l.sumSquares(x))+1e-6)
}

func softplus(x float64) float64 {
	if x > 20 {
		return x
	}
	return math.Log1p(math.Exp(x))
}
