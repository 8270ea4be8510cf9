package cpu

import (
	"fmt"
	"slices"

	"roundhouse/kernels"
)

// stage is a part of a step that all threads run, each its share. Threads meet
// before a stage only where it could otherwise see, or spoil, what another
// thread is still at.
type stage struct {
	run     func(thread int)
	reads   []int // buffers
	writes  []int
	rowwise bool // thread i has its share of the rows, in every such stage the same
	rows    kernels.Rows
	barrier bool        // before it
	without func() bool // in this step it has nothing to do; nil: it always has
	op      string      // of the program, for people
}

// buffer is memory of a step: a value, or what operations keep beside.
type buffer struct {
	bytes       int
	first, last int // stages that use it; first is -1 until one does
	memory      []byte
	fixed       bool // lives on beyond the step: pages
}

// plan turns a program into stages and lays out their memory.
type plan struct {
	x       *executable
	stages  []stage
	buffers []buffer
	packs   map[packKey]int
	written []int // by value: how often it was written so far
	tables  []ropeTable
	pages   map[*kv]int
	err     error
	keep    []int  // values that live until the end of the step
	doing   string // the operation that is turned into stages
}

// Compile implements kernels.Backend.
func (b *Backend) Compile(p *kernels.Program, limits kernels.Limits) (kernels.Executable, error) {
	if err := kernels.Check(p); err != nil {
		return nil, err
	}
	if limits.Tokens < 1 || limits.Seqs < 1 || limits.Rows < 0 {
		return nil, fmt.Errorf("limits of %d tokens, %d sequences and %d sampled rows", limits.Tokens, limits.Seqs, limits.Rows)
	}
	x := &executable{b: b, isa: b.isa, p: p, limits: limits, threads: b.team.threads, grids: kernels.NewGrids(p),
		costs: make([]float64, p.Kinds()), counts: make([]int, 0, p.Kinds())}
	pl := &plan{x: x, packs: map[packKey]int{}, pages: map[*kv]int{}, written: make([]int, len(p.Values))}
	for _, v := range p.Values {
		pl.buffer(x.limit(v.Rows) * v.Width * 4)
	}
	for _, op := range p.Ops {
		pl.op(op)
	}
	if pl.err != nil {
		return nil, pl.err
	}
	for _, i := range pl.keep {
		pl.buffers[i].last = len(pl.stages)
	}
	pl.barriersAfter(pl.layOut())
	if err := x.setAside(pl); err != nil {
		return nil, err
	}
	return x, nil
}

// buffer adds a buffer and returns its number.
func (pl *plan) buffer(bytes int) int {
	pl.buffers = append(pl.buffers, buffer{bytes: (bytes + 63) &^ 63, first: -1})
	return len(pl.buffers) - 1
}

// stage adds a stage, and notes which values it writes.
func (pl *plan) stage(s stage) {
	n := len(pl.stages)
	s.op = pl.doing
	for _, list := range [][]int{s.reads, s.writes} {
		for _, i := range list {
			b := &pl.buffers[i]
			if b.first < 0 {
				b.first = n
			}
			b.last = n
		}
	}
	for _, i := range s.writes {
		if i < len(pl.written) {
			pl.written[i]++
		}
	}
	pl.stages = append(pl.stages, s)
}

// rowwise adds a stage that works row by row.
func (pl *plan) rowwise(rows kernels.Rows, reads, writes []int, run func(first, last int)) {
	x := pl.x
	pl.stage(stage{reads: reads, writes: writes, rowwise: true, rows: rows, run: func(thread int) {
		first, last := x.share(rows, thread)
		if first < last {
			run(first, last)
		}
	}})
}

// operand is the buffer of a tensor in a list, empty for None.
func operand(tensors ...kernels.Tensor) []int {
	var list []int
	for _, t := range tensors {
		if t != kernels.None {
			list = append(list, int(t))
		}
	}
	return list
}

// layOut gives each buffer its place in one stretch of memory, so that buffers
// which are not alive at the same time share it. It returns the size.
func (pl *plan) layOut() (places []int, size int) {
	places = make([]int, len(pl.buffers))
	var order []int
	for i, b := range pl.buffers {
		if b.first >= 0 && !b.fixed {
			order = append(order, i)
		}
	}
	// The greatest first: what is small then fits between.
	slices.SortStableFunc(order, func(a, b int) int { return pl.buffers[b].bytes - pl.buffers[a].bytes })
	var placed []int // ascending by place
	for _, i := range order {
		b, at := &pl.buffers[i], 0
		for _, j := range placed {
			o := &pl.buffers[j]
			if o.last < b.first || b.last < o.first || places[j]+o.bytes <= at {
				continue
			}
			if at+b.bytes <= places[j] {
				break
			}
			at = places[j] + o.bytes
		}
		places[i] = at
		size = max(size, at+b.bytes)
		where, _ := slices.BinarySearchFunc(placed, at, func(j, at int) int { return places[j] - at })
		placed = slices.Insert(placed, where, i)
	}
	pl.x.places, pl.x.size = places, size
	return places, size
}

// barriersAfter decides before which stages the threads meet.
func (pl *plan) barriersAfter(places []int, _ int) {
	overlap := func(a, b int) bool {
		if a == b {
			return true
		}
		x, y := &pl.buffers[a], &pl.buffers[b]
		return !x.fixed && !y.fixed && places[a] < places[b]+y.bytes && places[b] < places[a]+x.bytes
	}
	touch := func(a, b []int) bool {
		return slices.ContainsFunc(a, func(i int) bool {
			return slices.ContainsFunc(b, func(j int) bool { return overlap(i, j) })
		})
	}
	start := 0 // of the stages since the last barrier
	for n := range pl.stages {
		s := &pl.stages[n]
		for _, o := range pl.stages[start:n] {
			if s.rowwise && o.rowwise && s.rows == o.rows && !pl.shifted(s, &o, overlap) {
				continue
			}
			if touch(o.writes, s.reads) || touch(o.writes, s.writes) || touch(o.reads, s.writes) {
				s.barrier = true
				start = n
				break
			}
		}
	}
}

// shifted reports whether two stages with the same share of rows use the same
// memory as different buffers: rows of one width then lie where another
// thread's rows of the other width do.
func (pl *plan) shifted(s, o *stage, overlap func(a, b int) bool) bool {
	for _, i := range append(slices.Clone(s.reads), s.writes...) {
		for _, j := range append(slices.Clone(o.reads), o.writes...) {
			if i != j && overlap(i, j) {
				return true
			}
		}
	}
	return false
}

func (pl *plan) op(op kernels.Op) {
	x := pl.x
	pl.doing = x.p.NameOf(op)
	switch op := op.(type) {
	case *kernels.Embed:
		pl.rowwise(kernels.Tokens, nil, operand(op.Out), func(a, b int) { x.embed(op, a, b) })
	case *kernels.Norm:
		pl.norm(op)
	case *kernels.Linear:
		pl.linear(op)
	case *kernels.RoPE:
		pl.rope(op)
	case *kernels.Attention:
		pl.attention(op)
	case *kernels.Activate:
		pl.rowwise(x.p.Values[op.In].Rows, operand(op.In), operand(op.Out), func(a, b int) { x.activate(op, a, b) })
	case *kernels.MoE:
		pl.moe(op)
	case *kernels.Scale:
		pl.rowwise(x.p.Values[op.In].Rows, operand(op.In, op.Gate, op.Add), operand(op.Out), func(a, b int) { x.scale(op, a, b) })
	case *kernels.Delta:
		pl.delta(op)
	case *kernels.LoRA:
		pl.lora(op)
	case *kernels.Features:
		width := x.p.Width(op.Out)
		pl.rowwise(x.p.Values[op.Out].Rows, nil, operand(op.Out), func(a, b int) {
			copy(x.values[op.Out][a*width:b*width], x.step.Features[a*width:])
		})
	case *kernels.Convolution:
		pl.convolution(op)
	case *kernels.Columns:
		pl.rowwise(x.p.Values[op.In].Rows, operand(op.In), operand(op.Out), func(a, b int) {
			for i := a; i < b; i++ {
				copy(x.row(op.Out, i), x.row(op.In, i)[op.First:])
			}
		})
	case *kernels.Place:
		pl.rowwise(kernels.Tokens, operand(op.X), operand(op.X), func(a, b int) { x.place(op, a, b) })
	case *kernels.Pick:
		pl.rowwise(kernels.Sampled, operand(op.In), operand(op.Out), func(a, b int) {
			for i := a; i < b; i++ {
				copy(x.row(op.Out, i), x.row(op.In, int(x.step.Rows[i])))
			}
		})
	case *kernels.Pool:
		pl.rowwise(kernels.Seqs, operand(op.In), operand(op.Out), func(a, b int) { x.pool(op, a, b) })
	case *kernels.Sample:
		pl.sample(op)
	case *kernels.Output:
		pl.output(op)
	}
}
