package cpu

import (
	"fmt"

	"roundhouse/kernels"
)

// adapters is room for the corrections of one matrix. Each slot has memory for
// matrices of the greatest rank.
type adapters struct {
	out, in, rank int
	slots         []adapter
	size          int64
}

// adapter is a slot. down and up are its A (rank, in) and B (out, rank), with
// data nil in an empty slot.
type adapter struct {
	down, up         weight
	downData, upData []byte
	factor           float32
}

// Adapters implements kernels.Adapting.
func (b *Backend) Adapters(out, in, slots, rank int) (kernels.Adapters, error) {
	if err := kernels.CheckRoom(out, in, slots, rank); err != nil {
		return nil, err
	}
	s := &adapters{out: out, in: in, rank: rank, slots: make([]adapter, slots)}
	down, up := halfMatrix(rank, in), halfMatrix(out, rank)
	for i := range s.slots {
		var err error
		a := &s.slots[i]
		if a.downData, err = b.weights.bytes(down.size()); err == nil {
			a.upData, err = b.weights.bytes(up.size())
		}
		if err != nil {
			return nil, fmt.Errorf("%d slots for adapters of rank %d: %w", slots, rank, err)
		}
		s.size += int64(down.size() + up.size())
	}
	return s, nil
}

// halfMatrix is a bf16 matrix without its memory.
func halfMatrix(out, in int) weight {
	return weight{format: kernels.FormatBF16, kind: kindBF16, out: out, in: in, tiles: (out + 15) / 16, blocks: (in + 31) / 32}
}

// size is the bytes of a matrix without scales.
func (w *weight) size() int { return w.tiles * w.blocks * blockBytes[w.kind] }

func (s *adapters) Shape() (out, in int) { return s.out, s.in }
func (s *adapters) Slots() int           { return len(s.slots) }
func (s *adapters) Rank() int            { return s.rank }
func (s *adapters) Bytes() int64         { return s.size }

// Set implements kernels.Adapters.
func (s *adapters) Set(slot int, a, b kernels.Source, factor float32) error {
	if err := kernels.CheckAdapter(s, slot, a, b); err != nil {
		return err
	}
	to := &s.slots[slot]
	to.factor = factor
	to.down, to.up = halfMatrix(a.Out, a.In), halfMatrix(b.Out, b.In)
	to.down.data, to.up.data = to.downData[:to.down.size()], to.upData[:to.up.size()]
	clear(to.down.data)
	clear(to.up.data)
	if err := to.down.packRows(a, 0, a.Out); err != nil {
		return err
	}
	return to.up.packRows(b, 0, b.Out)
}

// Clear implements kernels.Adapters.
func (s *adapters) Clear(slot int) error {
	if slot < 0 || slot >= len(s.slots) {
		return fmt.Errorf("slot %d of %d", slot, len(s.slots))
	}
	s.slots[slot].down, s.slots[slot].up = weight{}, weight{}
	return nil
}

// Rows that go through one adapter are taken piece by piece, and outputs stretch
// by stretch, so that what a thread works on stays in its first cache.
const (
	pieceRows    = 32
	pieceStretch = 8 // tiles
)

// piece is some neighbouring rows that go through one adapter.
type piece struct{ slot, first, last int }

// cutAdapters cuts the rows of a step into pieces. Those without an adapter are
// in none.
func (x *executable) cutAdapters() {
	x.pieces = x.pieces[:0]
	for i := range x.step.Seqs {
		q := &x.step.Seqs[i]
		if q.Adapter == 0 {
			continue
		}
		slot, end := int(q.Adapter)-1, int(q.First+q.Count)
		for row := int(q.First); row < end; {
			if n := len(x.pieces); n > 0 {
				if p := &x.pieces[n-1]; p.slot == slot && p.last == row && p.last-p.first < pieceRows {
					p.last = min(p.first+pieceRows, end)
					row = p.last
					continue
				}
			}
			x.pieces = append(x.pieces, piece{slot, row, min(row+pieceRows, end)})
			row = min(row+pieceRows, end)
		}
	}
}

// lora is one LoRA as the stages see it.
type lora struct {
	*kernels.LoRA
	x      *executable
	parts  []*adapters
	rank   int     // columns of middle that a part has
	in     packing // of In
	packed int     // buffers: In as it is read
	middle int     // (tokens, parts · rank): what the A give
	own    int     // (threads): rows of middle as the B read them, then what they give
	each   int     // bytes of a thread in own
	queues [2]*queue
}

// lora adds the stages of a LoRA: all A, and then all B, each by the kernels
// that bf16 linears have.
func (pl *plan) lora(op *kernels.LoRA) {
	x := pl.x
	l := &lora{LoRA: op, x: x, queues: [2]*queue{{}, {}}}
	x.queues = append(x.queues, l.queues[:]...)
	for _, a := range op.Adapters {
		s := a.(*adapters)
		l.parts, l.rank = append(l.parts, s), max(l.rank, (s.rank+15)&^15)
	}
	reads := halfMatrix(16, x.p.Width(op.In))
	l.in, l.packed = packingOf(x.isa, &reads), pl.packed(op.In, &reads)
	l.middle = pl.buffer(x.limits.Tokens * len(l.parts) * l.rank * 4)
	widest := halfMatrix(16, l.rank)
	operands := packingOf(x.isa, &widest)
	l.each = pieceRows * (operands.stride + 4*16*pieceStretch)
	l.own = pl.buffer(x.threads * l.each)
	pl.stage(stage{reads: []int{l.packed}, writes: []int{l.middle}, run: l.down})
	pl.stage(stage{reads: []int{l.middle}, writes: append(operand(op.Out), l.own), run: l.up})
}

// take shares the pieces out: one item is a stretch of one part's tiles for the
// rows of a piece.
func (l *lora) take(q *queue, most int, run func(p piece, part, first int)) {
	per := (most + pieceStretch - 1) / pieceStretch
	n := len(l.parts) * per
	q.take(len(l.x.pieces)*n, 1, func(item, _ int) {
		run(l.x.pieces[item/n], item%n/per, item%per*pieceStretch)
	})
}

// down multiplies by A.
func (l *lora) down(thread int) {
	x := l.x
	l.take(l.queues[0], l.rank/16, func(p piece, part, first int) {
		w := &l.parts[part].slots[p.slot].down
		if first >= w.tiles {
			return
		}
		stride := len(l.parts) * l.rank
		pr := product{w: w, packing: l.in, in: x.buffers[l.packed].memory[p.first*l.in.stride:], rows: p.last - p.first,
			out: floats(x.buffers[l.middle].memory)[p.first*stride:], stride: stride, column: part * l.rank, scale: 1}
		pr.run(x.isa, &x.scratch[thread], first, min(first+pieceStretch, w.tiles))
	})
}

// up multiplies what A gave by B and adds it to Out.
func (l *lora) up(thread int) {
	x := l.x
	tiles := 0
	for _, s := range l.parts {
		tiles = max(tiles, (s.out+15)/16)
	}
	l.take(l.queues[1], tiles, func(p piece, part, first int) {
		a := &l.parts[part].slots[p.slot]
		w := &a.up
		if first >= w.tiles {
			return
		}
		last := min(first+pieceStretch, w.tiles)
		own := x.buffers[l.own].memory[thread*l.each:][:l.each]
		out, own := floats(own[:4*pieceRows*16*pieceStretch]), own[4*pieceRows*16*pieceStretch:]
		operands := packingOf(x.isa, w)
		middle, stride := floats(x.buffers[l.middle].memory), len(l.parts)*l.rank
		for r := range p.last - p.first {
			operands.pack(x.isa, own[r*operands.stride:][:operands.stride], middle[(p.first+r)*stride+part*l.rank:][:w.in], nil)
		}
		pr := product{w: w, packing: operands, in: own, rows: p.last - p.first, out: out, stride: 16 * pieceStretch, column: -16 * first, scale: a.factor}
		pr.run(x.isa, &x.scratch[thread], first, last)
		from, to := 16*first, min(16*last, w.out)
		for r := range p.last - p.first {
			x.isa.add(x.row(l.Out, p.first+r)[l.Columns[part]+from:][:to-from], out[r*16*pieceStretch:][:to-from])
		}
	})
}
