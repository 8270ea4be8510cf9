package cpu

import (
	"unsafe"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// packKey names activations that are packed alike: one packing serves all
// linears that read the same value in the same way.
type packKey struct {
	value   int
	version int // how often the value had been written
	form    operandForm
	order   *int32 // act-order: packed in the order of this weight
}

// operandForm is what a kind of matrix reads.
type operandForm uint8

const (
	formFloat   operandForm = iota // float32, padded to 32 columns
	formOperand                    // bf16 operands as float32, padded to 32
	formInteger                    // int8 padded to 128, then scales, then sums
	formFine                       // the same with -Σ for each 32
)

func formOf(kind int) operandForm {
	switch {
	case fine(kind):
		return formFine
	case integer(kind):
		return formInteger
	case kind == kindF32 || kind == kindF16:
		return formFloat
	}
	return formOperand
}

// packing is the layout of packed rows of some width.
type packing struct {
	form   operandForm
	width  int // columns of a row
	padded int // columns with padding
	stride int // bytes from row to row
	order  []int32
}

func packingOf(l *isa, w *weight) packing {
	p := packing{form: formOf(w.kind), width: w.in, padded: w.blocks * blockColumns(w.kind), order: w.order}
	p.stride = 4 * p.padded
	switch p.form {
	case formInteger:
		p.stride = (p.padded + 8*w.blocks + 63) &^ 63
	case formFine:
		p.stride = (p.padded + 20*w.blocks + 63) &^ 63
	}
	if p.form == formOperand && l.halves != nil {
		p.stride += 2 * p.padded // the operands once more, as bf16
	}
	return p
}

// plain reports whether the packed row is the row itself.
func (p *packing) plain() bool { return p.form == formFloat && p.width == p.padded }

// pack packs one row into dst.
func (p *packing) pack(l *isa, dst []byte, row []float32, sorted []float32) {
	if p.order != nil {
		for k, c := range p.order {
			sorted[k] = row[c]
		}
		row = sorted[:p.width]
	}
	if p.form < formInteger {
		out := floats(dst[:4*p.padded])
		if p.form == formFloat {
			copy(out, row)
		} else {
			l.operands(out[:p.width], row)
		}
		clear(out[p.width:])
		if p.form == formOperand && l.halves != nil {
			l.halves(unsafe.Slice((*uint16)(unsafe.Pointer(&dst[4*p.padded])), p.padded), out)
		}
		return
	}
	groups := p.padded / num.Group
	q := unsafe.Slice((*int8)(unsafe.Pointer(&dst[0])), p.padded)
	scales := unsafe.Slice((*float32)(unsafe.Pointer(&dst[p.padded])), groups)
	each := 1 // sums of a group
	if p.form == formFine {
		each = 4
	}
	sums := unsafe.Slice((*int32)(unsafe.Pointer(&dst[p.padded+4*groups])), each*groups)
	clear(q[p.width:])
	for g := range groups {
		first, last := g*num.Group, min((g+1)*num.Group, p.width)
		scales[g], sums[each*g] = l.quantise(q[first:last], row[first:last])
		if each > 1 {
			partSums(sums[each*g:][:each], q[first:])
		}
	}
}

// packed adds the stage that packs a value for a weight, unless it has been,
// and returns the buffer.
func (pl *plan) packed(in kernels.Tensor, w *weight) int {
	x, p := pl.x, packingOf(pl.x.isa, w)
	if p.plain() {
		return int(in)
	}
	key := packKey{value: int(in), version: pl.written[in], form: p.form}
	if w.order != nil {
		key.order = &w.order[0]
	}
	if i, ok := pl.packs[key]; ok {
		return i
	}
	rows := x.p.Values[in].Rows
	i := pl.buffer(x.limit(rows) * p.stride)
	pl.packs[key] = i
	sorted := make([][]float32, x.threads)
	if w.order != nil {
		for t := range sorted {
			sorted[t] = make([]float32, w.in)
		}
	}
	pl.stage(stage{reads: operand(in), writes: []int{i}, rowwise: true, rows: rows, run: func(thread int) {
		first, last := x.share(rows, thread)
		memory := x.buffers[i].memory
		for r := first; r < last; r++ {
			p.pack(x.isa, memory[r*p.stride:][:p.stride], x.row(in, r), sorted[thread])
		}
	}})
	return i
}

// linear adds the stages of a Linear. Threads share the tiles of all its
// matrices; each reads its own from memory once, whatever the number of rows.
func (pl *plan) linear(op *kernels.Linear) {
	x := pl.x
	rows := x.p.Values[op.In].Rows
	packs, tiles, columns := make([]int, len(op.Weights)), make([]int, len(op.Weights)), make([]int, len(op.Weights)+1)
	all, bytes := 0, 0
	for i, m := range op.Weights {
		w := m.(*weight)
		packs[i], tiles[i], columns[i+1] = pl.packed(op.In, w), w.tiles, columns[i]+w.out
		x.costs[rows] += 2 * float64(w.out) * float64(w.in)
		all, bytes = all+w.tiles, max(bytes, w.blocks*blockBytes[w.kind])
	}
	number := x.tiles.add(all)
	reads := append(packs[:len(packs):len(packs)], operand(op.Add)...)
	writes, beside := operand(op.Out), -1
	if op.Add == op.Out { // the sums must not overwrite what they are added to
		beside = pl.buffer(x.limit(rows) * x.p.Width(op.Out) * 4)
		writes = append(writes, beside)
	}
	pl.stage(stage{reads: reads, writes: writes, run: func(thread int) {
		if x.counts[rows] == 0 {
			return
		}
		run := func(i, first, last int) {
			w := op.Weights[i].(*weight)
			p := product{w: w, packing: packingOf(x.isa, w), in: x.buffers[packs[i]].memory, rows: x.counts[rows],
				out: x.values[op.Out], stride: x.p.Width(op.Out), column: columns[i], scale: one(op.Scale)}
			if len(op.Biases) > 0 && op.Biases[i] != nil {
				p.bias = op.Biases[i].(*weight).vector
			}
			if beside >= 0 {
				p.out, p.into = floats(x.buffers[beside].memory), p.out
			} else if op.Add != kernels.None {
				p.add = x.values[op.Add]
			}
			p.run(x.isa, &x.scratch[thread], first, last)
		}
		if x.active == 1 || x.b.nodes {
			shares(tiles, thread, x.active, x.b.nodes, run)
			return
		}
		x.tiles.take(number, tilesAtOnce(x.counts[rows], bytes), thread, x.active, func(first, last int) { within(tiles, first, last, run) })
	}})
}

// tilesAtOnce is the fewest tiles of so many bytes that a thread takes at a time: of
// one row some microseconds of reading, of several what the kernels' shapes go
// into.
func tilesAtOnce(rows, bytes int) int {
	if rows == 1 {
		return max(1, 64<<10/bytes)
	}
	return 4
}

// product is rows of packed activations times tiles of a matrix.
type product struct {
	w       *weight
	packing packing
	in      []byte // (rows, packing.stride)
	rows    int
	out     []float32 // (rows, stride), results from column on
	stride  int
	column  int
	scale   float32
	bias    []float32 // (w.out) or nil
	add     []float32 // (rows, stride) or nil
	into    []float32 // (rows, stride) that out is added to in the end, or nil
}

// run multiplies by tiles first to last.
func (p *product) run(l *isa, s *scratch, first, last int) {
	if p.w.kind == kindFP8 && p.rows >= pairRows && l.pairsFP8 != nil {
		p.multiplyFP8(l, s, first, last)
		return
	}
	whole := last
	if p.w.out%16 != 0 && last == p.w.tiles {
		whole-- // the last tile has fewer outputs than lanes
	}
	for at := first; at < whole; {
		at += p.tiles(l, s, at, whole-at, p.out[p.column+16*at:], p.stride)
	}
	if whole < last {
		n := p.w.out - 16*whole
		for r := 0; r < p.rows; r += len(s.tail) / 16 {
			q := *p
			q.in, q.rows = p.in[r*p.packing.stride:], min(p.rows-r, len(s.tail)/16)
			q.tiles(l, s, whole, 1, s.tail[:], 16)
			for i := range q.rows {
				copy(p.out[(r+i)*p.stride+p.column+16*whole:][:n], s.tail[16*i:])
			}
		}
	}
	p.finish(l, 16*first, min(16*last, p.w.out))
}

// tiles multiplies all rows by up to most tiles from tile at on; it returns how
// many.
func (p *product) tiles(l *isa, s *scratch, at, most int, out []float32, stride int) int {
	shapes := l.matrix[p.w.kind]
	width := 0
	if p.rows == 1 || p.rows <= 4 && integer(p.w.kind) {
		most = 1 // one stretch of memory from the first tile to the last
	}
	t := &s.tile
	for r := 0; r < p.rows; {
		i := fitting(shapes, p.rows-r, most, width)
		width = shapes[i].tiles
		p.fill(t, at, r)
		run := shapes[i].run
		if p.next(t, at, r, &shapes[i]); r == 0 && shapes[i].first != nil && t.next == 0 {
			run = shapes[i].first
		}
		if p.w.groups > 0 {
			p.grouped(s, &shapes[i], at, out[r*stride:], stride)
		} else {
			t.out = unsafe.Pointer(&out[r*stride])
			t.outStride = uintptr(4 * stride)
			if t.outNext = uintptr(t.out) + uintptr(4*stride*shapes[i].rows); r+shapes[i].rows >= p.rows {
				t.outNext = uintptr(unsafe.Pointer(&out[0])) + uintptr(64*width)
			}
			run(t)
		}
		r += shapes[i].rows
	}
	return width
}

// next has the rows from r on ask for their part of the tiles that come after
// these, so that memory is read while all rows are worked on, not with the first
// alone. They are this thread's too, but for the end of its stretch.
func (p *product) next(t *tile, at, r int, m *multiply) {
	t.next, t.nextStep = 0, 0
	if at+2*m.tiles > p.w.tiles || p.rows == m.rows {
		return
	}
	panel := m.tiles * p.w.blocks * blockBytes[p.w.kind]
	from, to := panel*r/p.rows, panel*(r+m.rows)/p.rows
	t.next = uintptr(t.w) + uintptr(panel+from)
	steps := p.w.blocks * 8
	t.nextStep = uintptr(min(128, (to-from+steps-1)/steps))
}

// fitting is the place of the largest shape for so many rows and at most so
// many tiles, or exactly width if that is not 0. Rows that need two calls are
// halved where there is a shape for it: the weights have as much work in both.
func fitting(shapes []multiply, rows, most, width int) int {
	first := -1
	for i := range shapes {
		s := &shapes[i]
		if s.tiles > most || width > 0 && s.tiles != width {
			continue
		}
		if first >= 0 && s.tiles != shapes[first].tiles {
			break
		}
		if s.rows == rows || first >= 0 && s.rows == (rows+1)/2 {
			return i
		}
		if first < 0 && s.rows <= rows {
			first = i
			if 2*s.rows <= rows {
				break
			}
		}
	}
	return first
}

// grouped multiplies group by group of columns, each with scales of its own:
// out = out + part · scale, ascending.
func (p *product) grouped(s *scratch, m *multiply, at int, out []float32, stride int) {
	w, t := p.w, &s.tile
	t.out, t.outStride = unsafe.Pointer(&s.block[0]), uintptr(64*m.tiles)
	for r := range m.rows {
		clear(out[r*stride:][:16*m.tiles])
	}
	for g := range w.groups {
		t.blocks = uintptr(min(w.group, w.blocks-g*w.group))
		m.run(t)
		t.w = unsafe.Add(t.w, int(t.blocks)*blockBytes[w.kind])
		t.a = unsafe.Add(t.a, 128*int(t.blocks))
		if p.packing.stride > 4*p.packing.padded {
			t.aux = unsafe.Add(t.aux, 64*int(t.blocks)) // the operands as bf16
		}
		for r := range m.rows {
			for c := range m.tiles {
				y, part := (*lanes)(out[r*stride+16*c:]), (*lanes)(s.block[16*(r*m.tiles+c):])
				for j, scale := range (*lanes)(w.rows[((at+c)*w.groups+g)*16:]) {
					y[j] += float32(part[j] * scale)
				}
			}
		}
	}
}

// fill points a tile call at a tile and a row.
func (p *product) fill(t *tile, at, r int) {
	w := p.w
	bytes := w.blocks * blockBytes[w.kind]
	row := p.in[r*p.packing.stride:]
	t.w, t.wStride = unsafe.Pointer(&w.data[at*bytes]), uintptr(bytes)
	t.a, t.aStride = unsafe.Pointer(&row[0]), uintptr(p.packing.stride)
	t.blocks = uintptr(w.blocks)
	if p.packing.form == formOperand && p.packing.stride > 4*p.packing.padded {
		t.aux = unsafe.Pointer(&row[4*p.packing.padded])
	}
	if w.kind == kindMXFP4 {
		t.scales, t.scaleTile = unsafe.Pointer(&w.halves[at*w.blocks*16]), uintptr(w.blocks*16)
	}
	if p.packing.form < formInteger {
		return
	}
	t.aux, t.auxStride = unsafe.Pointer(&row[p.packing.padded]), uintptr(p.packing.stride)
	t.sums = unsafe.Pointer(&row[p.packing.padded+4*w.blocks])
	if w.halves != nil {
		t.scaleTile = uintptr(len(w.halves) / w.tiles)
		t.scales = unsafe.Pointer(&w.halves[at*int(t.scaleTile)])
	}
	if w.zeros != nil {
		t.zeroTile = uintptr(len(w.zeros) / w.tiles)
		t.zeros = unsafe.Pointer(&w.zeros[at*int(t.zeroTile)])
	}
}

// finish applies to outputs first to last what comes after the sums: the
// scales of the outputs, the factor, the bias and the residual.
func (p *product) finish(l *isa, first, last int) {
	rows := p.w.rows
	if p.w.groups > 0 {
		rows = nil // the scales are in the sums
	}
	if rows == nil && p.scale == 1 && p.bias == nil && p.add == nil && p.into == nil {
		return
	}
	for r := range p.rows {
		at := r*p.stride + p.column
		y := p.out[at+first : at+last]
		if rows != nil {
			for k, s := range rows[first:last] {
				y[k] *= s
			}
		}
		if p.scale != 1 {
			for k := range y {
				y[k] *= p.scale
			}
		}
		if p.bias != nil {
			l.add(y, p.bias[first:last])
		}
		if p.add != nil {
			l.add(y, p.add[at+first:at+last])
		}
		if p.into != nil {
			l.add(p.into[at+first:at+last], y)
		}
	}
}
