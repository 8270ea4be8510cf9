package cpu

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"roundhouse/kernels"
)

// moe adds the stages of a MoE: scores, the choice, and then the chosen experts
// with the rows that each has, every expert's matrices read once.
func (pl *plan) moe(op *kernels.MoE) {
	x := pl.x
	rows := x.p.Values[op.In].Rows
	limit := x.limit(rows)
	experts := len(op.GateUp)
	_, inner := op.Down[0].Shape()
	m := &mixture{MoE: op, x: x, rows: rows, inner: inner, queue: [2]*queue{{}, {}}}
	x.queues = append(x.queues, m.queue[:]...)
	m.chosen = make([]int32, limit*op.Top)
	m.weights = make([]float32, limit*op.Top)
	m.slots = make([]int32, limit*op.Top)
	m.starts = make([]int32, experts+1)
	m.choice = make([][]float32, x.threads)
	for t := range m.choice {
		m.choice[t] = make([]float32, experts)
	}
	for e := range experts {
		up, down := op.GateUp[e].(*weight), op.Down[e].(*weight)
		if up.order != nil || down.order != nil || up.kind != op.GateUp[0].(*weight).kind || down.kind != op.Down[0].(*weight).kind {
			pl.err = fmt.Errorf("expert %d has sorted columns (act-order), or another format than expert 0: %w", e, errors.ErrUnsupported)
			return
		}
	}
	slots := limit * op.Top
	x.costs[rows] += 6 * float64(op.Top) * float64(inner) * float64(x.p.Width(op.In))
	m.upPacking, m.downPacking = packingOf(x.isa, op.GateUp[0].(*weight)), packingOf(x.isa, op.Down[0].(*weight))
	scores := pl.buffer(limit * experts * 4)
	table := pl.buffer(64) // stands for chosen, weights, slots and starts
	m.upIn, m.both = pl.buffer(slots*m.upPacking.stride), pl.buffer(slots*2*inner*4)
	m.downIn, m.sums = pl.buffer(slots*m.downPacking.stride), pl.buffer(slots*x.p.Width(op.Out)*4)

	router := op.Router.(*weight)
	in := pl.packed(op.In, router)
	pl.stage(stage{reads: []int{in}, writes: []int{scores}, run: func(thread int) {
		p := product{w: router, packing: packingOf(x.isa, router), in: x.buffers[in].memory, rows: x.counts[rows], out: floats(x.buffers[scores].memory), stride: experts, scale: 1}
		if op.RouterAdd != nil {
			p.bias = op.RouterAdd.(*weight).vector
		}
		if first, last := router.tiles*thread/x.active, router.tiles*(thread+1)/x.active; first < last && p.rows > 0 {
			p.run(x.isa, &x.scratch[thread], first, last)
		}
	}})
	pl.stage(stage{reads: []int{scores}, writes: []int{table}, rowwise: true, rows: rows, run: func(thread int) {
		first, last := x.share(rows, thread)
		for i := first; i < last; i++ {
			m.route(i, floats(x.buffers[scores].memory)[i*experts:][:experts], m.choice[thread])
		}
	}})
	pl.stage(stage{reads: []int{table}, writes: []int{table}, run: m.arrange})
	pl.stage(stage{reads: append(operand(op.In), table), writes: []int{m.upIn}, run: m.gather})
	pl.stage(stage{reads: []int{m.upIn, table}, writes: []int{m.both}, run: m.multiplyUp})
	pl.stage(stage{reads: []int{m.both, table}, writes: []int{m.downIn}, run: m.activate})
	pl.stage(stage{reads: []int{m.downIn, table}, writes: []int{m.sums}, run: m.multiplyDown})
	pl.stage(stage{reads: append(operand(op.Add), table), writes: append(operand(op.Out), m.sums), run: func(thread int) {
		if first, last := x.share(rows, thread); first < last {
			m.combine(first, last)
		}
	}})
}

// mixture is a MoE as the stages see it. A slot is one row at one expert; slots
// are in the order of experts.
type mixture struct {
	*kernels.MoE
	x                        *executable
	rows                     kernels.Rows
	inner                    int
	chosen                   []int32   // (rows, Top) experts
	weights                  []float32 // (rows, Top)
	slots                    []int32   // (rows, Top) where each is
	starts                   []int32   // the first slot of each expert
	choice                   [][]float32
	upPacking, downPacking   packing
	upIn, both, downIn, sums int // buffers
	queue                    [2]*queue
}

// route chooses the experts of row i, as package ref defines it.
func (m *mixture) route(i int, scores, choice []float32) {
	chosen, weights := m.chosen[i*m.Top:][:m.Top], m.weights[i*m.Top:][:m.Top]
	switch {
	case m.Sigmoid:
		for e, s := range scores {
			scores[e] = sigmoid(s)
		}
	case !m.TopFirst:
		softmax(scores)
	}
	copy(choice, scores)
	if m.Bias != nil {
		for e, b := range m.Bias.(*weight).vector[:len(choice)] {
			choice[e] += b
		}
	}
	if m.Groups > 1 {
		m.keepGroups(choice)
	}
	for c := range chosen {
		e := greatestIndex(choice)
		chosen[c], weights[c] = int32(e), scores[e]
		choice[e] = float32(math.Inf(-1))
	}
	if m.TopFirst && !m.Sigmoid {
		softmax(weights)
	}
	scale := one(m.Scale)
	if m.Normalise {
		var total float32
		for _, w := range weights {
			total += w
		}
		scale /= total + 1e-20
	}
	for c := range weights {
		weights[c] *= scale
	}
}

// keepGroups takes the experts of all but the best groups out of the choice.
func (m *mixture) keepGroups(choice []float32) {
	size := len(choice) / m.Groups
	score := func(g int) float32 {
		if m.taken(choice, g*size, size) {
			return float32(math.Inf(-1))
		}
		group := choice[g*size:][:size]
		first := greatestIndex(group)
		s := group[first]
		if m.Bias != nil && size > 1 {
			second := float32(math.Inf(-1))
			for i, v := range group {
				if i != first {
					second = max(second, v)
				}
			}
			s += second
		}
		return s
	}
	for range m.Groups - m.TopGroups {
		worst, least := -1, float32(0)
		for g := range m.Groups {
			// Of equals the later goes first, so ties fall to the lower group.
			if s := score(g); !m.taken(choice, g*size, size) && (worst < 0 || s <= least) {
				worst, least = g, s
			}
		}
		for i := range size {
			choice[worst*size+i] = float32(math.Inf(-1))
		}
	}
}

// taken reports whether a group is out of the choice already.
func (m *mixture) taken(choice []float32, first, size int) bool {
	for _, v := range choice[first:][:size] {
		if !math.IsInf(float64(v), -1) {
			return false
		}
	}
	return true
}

func greatestIndex(x []float32) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}

func softmax(x []float32) {
	most := slices.Max(x)
	var total float32
	for i, v := range x {
		x[i] = exp(v - most)
		total += x[i]
	}
	for i := range x {
		x[i] /= total
	}
}

// arrange gives every choice its slot.
func (m *mixture) arrange(thread int) {
	if thread != 0 {
		return
	}
	clear(m.starts)
	n := m.x.counts[m.rows] * m.Top
	for _, e := range m.chosen[:n] {
		m.starts[e+1]++
	}
	for e := range m.starts[1:] {
		m.starts[e+1] += m.starts[e]
	}
	for i, e := range m.chosen[:n] {
		m.slots[i] = m.starts[e]
		m.starts[e]++
	}
	copy(m.starts[1:], m.starts)
	m.starts[0] = 0
}

// each calls run for this thread's share of the choices.
func (m *mixture) each(thread int, run func(choice, slot int)) {
	n := m.x.counts[m.rows] * m.Top
	for i := n * thread / m.x.active; i < n*(thread+1)/m.x.active; i++ {
		run(i, int(m.slots[i]))
	}
}

// gather packs the rows for the first matrix.
func (m *mixture) gather(thread int) {
	memory, p := m.x.buffers[m.upIn].memory, &m.upPacking
	m.each(thread, func(i, slot int) {
		p.pack(m.x.isa, memory[slot*p.stride:][:p.stride], m.x.row(m.In, i/m.Top), nil)
	})
}

// activate packs the rows for the second matrix.
func (m *mixture) activate(thread int) {
	both, memory, p := floats(m.x.buffers[m.both].memory), m.x.buffers[m.downIn].memory, &m.downPacking
	m.each(thread, func(_, slot int) {
		row := both[slot*2*m.inner:][:2*m.inner]
		m.x.gate(m.Kind, m.Limit, row[:m.inner], row[:m.inner], row[m.inner:])
		p.pack(m.x.isa, memory[slot*p.stride:][:p.stride], row[:m.inner], nil)
	})
}

func (m *mixture) multiplyUp(thread int) {
	m.multiply(thread, m.queue[0], m.GateUp, m.GateUpAdd, &m.upPacking, m.upIn, m.both)
}

func (m *mixture) multiplyDown(thread int) {
	m.multiply(thread, m.queue[1], m.Down, m.DownAdd, &m.downPacking, m.downIn, m.sums)
}

// multiply runs one matrix of every expert that has rows; threads take
// stretches of tiles as they get to them.
func (m *mixture) multiply(thread int, q *queue, matrices, biases []kernels.Weight, p *packing, in, out int) {
	const stretch = 8
	x := m.x
	w0 := matrices[0].(*weight)
	per := (w0.tiles + stretch - 1) / stretch
	q.take(len(matrices)*per, 1, func(item, _ int) {
		e := item / per
		w := matrices[e].(*weight)
		start, rows := int(m.starts[e]), int(m.starts[e+1]-m.starts[e])
		first := item % per * stretch
		if rows == 0 || first >= w.tiles {
			return
		}
		pr := product{w: w, packing: *p, in: x.buffers[in].memory[start*p.stride:], rows: rows,
			out: floats(x.buffers[out].memory)[start*w.out:], stride: w.out, scale: 1}
		if biases != nil && biases[e] != nil {
			pr.bias = biases[e].(*weight).vector
		}
		pr.run(x.isa, &x.scratch[thread], first, min(first+stretch, w.tiles))
	})
}

// combine adds up what the experts of each row gave, in the order of choice.
func (m *mixture) combine(first, last int) {
	sums := floats(m.x.buffers[m.sums].memory)
	for i := first; i < last; i++ {
		out := m.x.row(m.Out, i)
		var sum []float32
		for c := range m.Top {
			w := m.weights[i*m.Top+c]
			y := sums[int(m.slots[i*m.Top+c])*len(out):][:len(out)]
			if c == 0 {
				sum = y
				for k := range sum {
					sum[k] *= w
				}
				continue
			}
			for k, v := range y {
				sum[k] += float32(w * v)
			}
		}
		if m.Add != kernels.None {
			m.x.isa.add(sum, m.x.row(m.Add, i))
		}
		copy(out, sum)
	}
}
