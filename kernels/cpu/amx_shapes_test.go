//go:build amd64 && !purego

package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// EachAMXShape checks every shape of every AMX kernel against the portable
// instruction set, to the bit.
func EachAMXShape(t *testing.T) {
	amx, plain := isaAMX(), portable()
	for kind, shapes := range matrixAMX() {
		for _, m := range shapes {
			for blocks := 1; blocks < 4; blocks++ {
				t.Run(fmt.Sprintf("%d/%dx%d/%d", kind, m.rows, m.tiles, blocks), func(t *testing.T) {
					sameProduct(t, newProduct(amx, kind, m, blocks), m, plain.matrix[kind][0])
				})
			}
		}
	}
}

// Every shape of the bf16 kernels, those that look ahead among them, gives the
// bits of the portable instruction set.
func TestDotShapes(t *testing.T) {
	l := isas()
	dots := slices.IndexFunc(l, func(l *isa) bool { return l.name == "avx512_bf16" })
	if dots < 0 {
		t.Log("this machine has no AVX512_BF16")
		return
	}
	plain := portable().matrix[kindBF16][0]
	for _, m := range matrixDot() {
		for blocks := 1; blocks < 4; blocks++ {
			p := newProduct(l[dots], kindBF16, m, blocks)
			sameProduct(t, p, m, plain)
			m.run = m.first
			sameProduct(t, p, m, plain)
		}
	}
}

// newProduct makes a matrix of m.tiles tiles and m.rows rows of activations.
func newProduct(l *isa, kind int, m multiply, blocks int) *product {
	r := rand.New(rand.NewPCG(uint64(kind), uint64(m.rows*100+m.tiles*10+blocks)))
	w := &weight{kind: kind, in: blocks * blockColumns(kind), out: 16 * m.tiles, tiles: m.tiles, blocks: blocks}
	w.data = make([]byte, m.tiles*blocks*blockBytes[kind])
	w.halves = make([]byte, m.tiles*blocks*32)
	scales := unsafe.Slice((*uint16)(unsafe.Pointer(&w.halves[0])), m.tiles*blocks*16)
	for i := range scales {
		scales[i] = num.F16(float32(r.NormFloat64()))
	}
	if kind == kindInt4Zero {
		w.zeros = make([]uint8, m.tiles*blocks*16)
		for i := range w.zeros {
			w.zeros[i] = uint8(r.IntN(16))
		}
	}
	for i := range w.data {
		w.data[i] = byte(r.Uint32())
	}
	if kind == kindBF16 {
		values := unsafe.Slice((*uint16)(unsafe.Pointer(&w.data[0])), len(w.data)/2)
		for i := range values {
			values[i] = num.BF16(num.Operand(float32(r.NormFloat64())))
		}
	}
	p := &product{w: w, packing: packingOf(l, w), rows: m.rows, stride: 16*m.tiles + 3, scale: 1}
	p.in = make([]byte, m.rows*p.packing.stride)
	row := make([]float32, w.in)
	for i := range m.rows {
		for k := range row {
			row[k] = float32(r.NormFloat64())
		}
		p.packing.pack(l, p.in[i*p.packing.stride:][:p.packing.stride], row, nil)
	}
	return p
}

// sameProduct runs one shape and the portable kernel over the same operands.
func sameProduct(t *testing.T, p *product, m, plain multiply) {
	var s scratch
	if err := s.setAside(&executable{p: &kernels.Program{}}); err != nil {
		t.Fatal(err)
	}
	got, want := make([]float32, m.rows*p.stride), make([]float32, 16)
	p.fill(&s.tile, 0, 0)
	s.tile.out, s.tile.outStride = unsafe.Pointer(&got[0]), uintptr(4*p.stride)
	m.run(&s.tile)
	for r := range m.rows {
		for c := range m.tiles {
			p.fill(&s.tile, c, r)
			s.tile.out = unsafe.Pointer(&want[0])
			plain.run(&s.tile)
			for j, w := range want {
				if g := got[r*p.stride+16*c+j]; g != w {
					t.Fatalf("row %d, output %d is %v; the portable level gives %v", r, 16*c+j, g, w)
				}
			}
		}
	}
}
