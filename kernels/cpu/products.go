package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// chances are those of a query for tokens first to last of a split; scores at first.
func (s *scratch) chances(q, first, last int) []float32 {
	return s.scores[q*split:][first:last:last]
}

// wide is the columns of weighted values with padding.
func (a *attention) wide() int { return (a.ValueDim + 15) &^ 15 }

// partOf is a split's weighted values of a query.
func (a *attention) partOf(s *scratch, q int) []float32 {
	return s.part[q*a.wide():][:a.ValueDim]
}

// score fills the queries' rows of s.scores with their products with keys first
// to end, which are of one split. Keys of 16 tokens are a tile, two of which are
// multiplied by together.
func (a *attention) score(s *scratch, queries, seq, head, first, end int) {
	c, base := a.cache, first/split*split
	s.cached = [2]int{-1, -1}
	kind := a.kindFor(queries)
	whole := c.spec.BlockTokens%16 == 0 // then tiles begin at multiples of 16
	if whole {
		for q := range queries {
			clear(s.chances(q, first&^15-base, (end+15)&^15-base))
		}
	}
	for t := first; t < end; {
		slot := t % c.spec.BlockTokens
		from := slot &^ 15
		f := fused{a: unsafe.Pointer(&s.queries[0]), as: uintptr(4 * a.KeyDim), n: uintptr(a.KeyDim)}
		f.b, f.bs = a.keysOf(s, kind, seq, t, head)
		if !whole {
			n := min(end-t, min(from+16, c.spec.BlockTokens)-slot)
			clear(s.lanes[:16*queries])
			f.y, f.ys = unsafe.Pointer(&s.lanes[0]), 64
			a.x.isa.fuse(kind, s.call(f), queries, 1)
			for q := range queries {
				copy(s.chances(q, t-base, t-base+n), s.lanes[16*q+slot-from:])
			}
			t += n
			continue
		}
		t -= slot - from
		f.y, f.ys = unsafe.Pointer(&s.scores[t-base]), 4*split
		tiles := 1
		if t+16 < end {
			second, _ := a.keysOf(s, kind, seq, t+16, head)
			f.second, tiles = uintptr(second)-uintptr(f.b), 2
		}
		a.x.isa.fuse(kind, s.call(f), queries, tiles)
		t += 16 * tiles
	}
	if c.spec.Type == kernels.Int8 {
		a.pagesOfTokens(seq, head, first, end, func(page []byte, slot, t, n int) {
			for q := range queries {
				a.x.isa.scaleAll(s.chances(q, t-base, t-base+n), c.keyScales(page)[slot:])
			}
		})
	}
}

// call keeps a call where assembly may read it.
func (s *scratch) call(f fused) *fused {
	s.fused = f
	return &s.fused
}

// keysOf is the tile of keys that a token is in, and the bytes from row to row.
// Keys that kernels of the kind do not read are widened, a page at a time.
func (a *attention) keysOf(s *scratch, kind, seq, token, head int) (tile unsafe.Pointer, step uintptr) {
	c, block, from := a.cache, token/a.cache.spec.BlockTokens, token%a.cache.spec.BlockTokens&^15
	if c.reads(kind) {
		return unsafe.Pointer(&a.page(seq, token, head)[from*c.elem]), uintptr(c.stride * c.elem)
	}
	i := 0
	switch block {
	case s.cached[0]:
	case s.cached[1]:
		i = 1
	default:
		i = 1 - s.latest
		c.widen(a.x.isa, s.pages[i][:a.KeyDim*c.stride], a.page(seq, token, head))
		s.cached[i] = block
	}
	s.latest = i
	return unsafe.Pointer(&s.pages[i][from]), uintptr(4 * c.stride)
}

// kindFor is the kind of the kernels by which so many queries are multiplied:
// for several it is worth while to widen bf16 once.
func (a *attention) kindFor(queries int) int {
	if a.cache.spec.Type == kernels.BF16 && queries < 8 {
		return fusedBF16
	}
	return fusedF32
}

// reads reports whether kernels of a kind read the numbers of the pages.
func (c *kv) reads(kind int) bool {
	return kind == fusedBF16 || c.spec.Type == kernels.F32
}

// widen reads numbers of a page as float32.
func (c *kv) widen(l *isa, to []float32, page []byte) {
	switch c.spec.Type {
	case kernels.BF16:
		l.widenBF16(to, page)
	case kernels.F8E4M3:
		l.widenFP8(to, page)
	case kernels.Int8:
		l.widenInt8(to, page)
	default:
		copy(to, floats(page[:4*len(to)]))
	}
}

// pagesOfTokens visits the pages of tokens first to end: n tokens from t on,
// which begin at a slot.
func (a *attention) pagesOfTokens(seq, head, first, end int, visit func(page []byte, slot, t, n int)) {
	for t := first; t < end; {
		slot := t % a.cache.spec.BlockTokens
		n := min(end-t, a.cache.spec.BlockTokens-slot)
		visit(a.page(seq, t, head), slot, t, n)
		t += n
	}
}

// weigh adds chances · values over tokens first to end, which are of the split at
// base, to the parts of queries from to to.
func (a *attention) weigh(s *scratch, from, to, seq, head, base, first, end int) {
	c := a.cache
	a.pagesOfTokens(seq, head, first, end, func(page []byte, slot, t, n int) {
		if c.spec.Type == kernels.Int8 { // every chance is looked at once
			scales := c.scalesOfValues(page, a.V == kernels.None)[slot:]
			for q := from; q < to; q++ {
				a.x.isa.scaleAll(s.chances(q, t-base, t-base+n), scales)
			}
		}
		if a.V == kernels.None {
			a.weighKeys(s, page, slot, t-base, n, from, to)
			return
		}
		values := page[c.keyBytes+slot*a.ValueDim*c.elem:]
		f := fused{bs: uintptr(a.ValueDim * c.elem), second: uintptr(16 * c.elem), n: uintptr(n)}
		kind := a.kindFor(to - from)
		if !c.reads(kind) {
			c.widen(a.x.isa, s.pages[0][:n*a.ValueDim], values)
			f.bs, f.second = uintptr(4*a.ValueDim), 64
			values = bytesOf(s.pages[0])
		}
		a.columns(s, kind, f, values, t-base, from, to)
	})
}

// columns adds the chances of f.n tokens from one of the split on, times their
// values, to the parts of queries from to to.
func (a *attention) columns(s *scratch, kind int, f fused, values []byte, token, from, to int) {
	tiles, size := a.ValueDim/16, int(f.second)
	f.ys, f.as = uintptr(4*a.wide()), 4*split
	for tile := 0; tile < tiles; tile += 2 {
		f.a, f.y = unsafe.Pointer(&s.scores[from*split+token]), unsafe.Pointer(&s.part[from*a.wide()+16*tile])
		f.b = unsafe.Pointer(&values[tile*size])
		a.x.isa.fuse(kind, s.call(f), to-from, min(2, tiles-tile))
	}
	for q := from; q < to && 16*tiles < a.ValueDim; q++ { // what is left has fewer columns than a tile
		part := a.partOf(s, q)
		for t, p := range s.chances(q, token, token+int(f.n)) {
			for d := 16 * tiles; d < a.ValueDim; d++ {
				part[d] = fma(p, number(kind, values[t*int(f.bs)+d*size/16:]), part[d])
			}
		}
	}
}

// number reads a number as kernels of a kind do.
func number(kind int, b []byte) float32 {
	if kind == fusedBF16 {
		return num.FromBF16(binary.LittleEndian.Uint16(b))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

// weighKeys is weigh for a page where the values are the first columns of the
// keys: these are turned, 16 tokens by 16 columns at a time.
func (a *attention) weighKeys(s *scratch, page []byte, slot, token, n, from, to int) {
	c, l, tiles := a.cache, a.x.isa, a.wide()/16
	keys := s.pages[0][:a.wide()*c.stride]
	rows := min(a.KeyDim, a.wide()) * c.stride
	clear(keys[rows:])
	c.widen(l, keys[:rows], page)
	for at := slot &^ 15; at < slot+n; at += 16 {
		first, last := max(slot, at), min(slot+n, at+16)
		for tile := range tiles {
			l.lanesOf(s.turned[16*tile:][:16], dwords(keys[16*tile*c.stride+at:]), c.stride, 0)
		}
		f := fused{ys: uintptr(4 * a.wide()), as: 4 * split, bs: 64, second: 1024, n: uintptr(last - first)}
		for tile := 0; tile < tiles; tile += 2 {
			f.a, f.y = unsafe.Pointer(&s.scores[from*split+token+first-slot]), unsafe.Pointer(&s.part[from*a.wide()+16*tile])
			f.b = unsafe.Pointer(&s.turned[16*tile+first-at])
			l.fuse(fusedF32, s.call(f), to-from, min(2, tiles-tile))
		}
	}
}

// dwords sees numbers as their bits.
func dwords(x []float32) []uint32 { return unsafe.Slice((*uint32)(unsafe.Pointer(&x[0])), len(x)) }

// bytesOf sees numbers as bytes.
func bytesOf(x []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)) }
