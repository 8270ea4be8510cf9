package cpu

import (
	"unsafe"

	"roundhouse/kernels/num"
)

// A fused call is y += a · b for rows of a and one or two tiles of b, where b is
// keys or values as they lie in pages: rows of 16 numbers. Each number of y takes
// the products in ascending order of b's rows, rounded once with the sum. The
// assembly reads the fields by their offsets.
type fused struct {
	y      unsafe.Pointer // first row of sums, 16 numbers a tile
	ys     uintptr        // bytes from row to row
	a      unsafe.Pointer // first row of factors
	as     uintptr        // bytes from row to row
	b      unsafe.Pointer // first row of the first tile
	second uintptr        // bytes from there to the second tile
	bs     uintptr        // bytes from row to row of a tile
	n      uintptr        // rows of a tile, at least 1
}

// fusedShape is one shape of a kernel: rows by tiles.
type fusedShape struct {
	rows, tiles int
	run         func(*fused)
}

// Kinds of b.
const (
	fusedF32 = iota
	fusedBF16
	fusedKinds
)

// fused multiplies so many rows by one tile or two.
func (l *isa) fuse(kind int, f *fused, rows, tiles int) {
	shapes := l.fused[kind]
	if shapes[0].tiles < tiles { // the instruction set has no shapes of two
		g := *f
		l.fuse(kind, f, rows, 1)
		*f = g
		f.y, f.b = unsafe.Add(f.y, 64), unsafe.Add(f.b, f.second)
		tiles = 1
	}
	for i := 0; rows > 0; {
		s := &shapes[i]
		if s.tiles != tiles || s.rows > rows {
			i++
			continue
		}
		s.run(f)
		if rows -= s.rows; rows > 0 { // a pointer behind the last row would be another object's
			f.y, f.a = unsafe.Add(f.y, uintptr(s.rows)*f.ys), unsafe.Add(f.a, uintptr(s.rows)*f.as)
		}
	}
}

func fuseF32(f *fused) {
	y := (*lanes)(f.y)
	for k, x := range unsafe.Slice((*float32)(f.a), f.n) {
		for j, v := range (*lanes)(unsafe.Add(f.b, uintptr(k)*f.bs)) {
			y[j] = fma(x, v, y[j])
		}
	}
}

func fuseBF16(f *fused) {
	y := (*lanes)(f.y)
	for k, x := range unsafe.Slice((*float32)(f.a), f.n) {
		for j, v := range (*[16]uint16)(unsafe.Add(f.b, uintptr(k)*f.bs)) {
			y[j] = fma(x, num.FromBF16(v), y[j])
		}
	}
}
