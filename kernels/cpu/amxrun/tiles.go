//go:build linux && amd64

package main

import (
	"encoding/binary"
	"fmt"
	"math"
)

// memory is the memory of the traced program.
type memory interface {
	read(address uint64, b []byte) error
	write(address uint64, b []byte) error
}

// tiles is the state of the unit in one thread.
type tiles struct {
	configured bool
	rows       [8]int
	bytes      [8]int // of a row
	data       [8][16][64]byte
}

// configure is ldtilecfg: 64 bytes at an address.
func (t *tiles) configure(m memory, address uint64) error {
	var c [64]byte
	if err := m.read(address, c[:]); err != nil {
		return err
	}
	if c[0] != 1 || c[1] != 0 {
		return fmt.Errorf("a tile configuration of palette %d that starts at row %d; expected palette 1, row 0", c[0], c[1])
	}
	*t = tiles{configured: true}
	for i := range 8 {
		t.bytes[i], t.rows[i] = int(binary.LittleEndian.Uint16(c[16+2*i:])), int(c[48+i])
		if t.bytes[i] > 64 || t.rows[i] > 16 || (t.bytes[i] == 0) != (t.rows[i] == 0) {
			return fmt.Errorf("tile %d is configured with %d rows of %d bytes; at most 16 of 64", i, t.rows[i], t.bytes[i])
		}
	}
	return nil
}

// load is tileloadd; rows beyond the configured ones become zero.
func (t *tiles) load(m memory, tile int, address, stride uint64) error {
	t.data[tile] = [16][64]byte{}
	for r := range t.rows[tile] {
		if err := m.read(address+uint64(r)*stride, t.data[tile][r][:t.bytes[tile]]); err != nil {
			return err
		}
	}
	return nil
}

// store is tilestored.
func (t *tiles) store(m memory, tile int, address, stride uint64) error {
	for r := range t.rows[tile] {
		if err := m.write(address+uint64(r)*stride, t.data[tile][r][:t.bytes[tile]]); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether c += a · b is allowed: c (M, N), a (M, K), b (K, N), with K
// in dwords.
func (t *tiles) fits(c, a, b int) error {
	if c == a || c == b || a == b {
		return fmt.Errorf("a product of tiles %d, %d and %d, which must differ", c, a, b)
	}
	if t.rows[c] != t.rows[a] || t.bytes[c] != t.bytes[b] || t.bytes[a] != 4*t.rows[b] {
		return fmt.Errorf("a product of tiles that don't fit: sums %d x %d bytes, rows %d x %d, columns %d x %d",
			t.rows[c], t.bytes[c], t.rows[a], t.bytes[a], t.rows[b], t.bytes[b])
	}
	return nil
}

// dotBytes is tdpbsud: signed bytes of a by unsigned bytes of b.
func (t *tiles) dotBytes(c, a, b int) {
	for m := range t.rows[c] {
		for n := range t.bytes[c] / 4 {
			cell := t.data[c][m][4*n:]
			sum := binary.LittleEndian.Uint32(cell)
			for k := range t.rows[b] {
				for i := range 4 {
					sum += uint32(int32(int8(t.data[a][m][4*k+i])) * int32(t.data[b][k][4*n+i]))
				}
			}
			binary.LittleEndian.PutUint32(cell, sum)
		}
	}
}

// dotBF16 is tdpbf16ps: even and odd products are summed apart, fused, then both
// are added to the sum. Denormal numbers count as zero, at every step.
func (t *tiles) dotBF16(c, a, b int) {
	half := func(row *[64]byte, i int) float32 {
		return flush(math.Float32frombits(uint32(binary.LittleEndian.Uint16(row[2*i:])) << 16))
	}
	for m := range t.rows[c] {
		for n := range t.bytes[c] / 4 {
			var even, odd float32
			for k := range t.rows[b] {
				even = flush(even + half(&t.data[a][m], 2*k)*half(&t.data[b][k], 2*n))
				odd = flush(odd + half(&t.data[a][m], 2*k+1)*half(&t.data[b][k], 2*n+1))
			}
			cell := t.data[c][m][4*n:]
			sum := flush(math.Float32frombits(binary.LittleEndian.Uint32(cell)))
			binary.LittleEndian.PutUint32(cell, math.Float32bits(flush(sum+flush(even+odd))))
		}
	}
}

// flush is x, or zero of its sign where x is denormal. A product of two bf16
// numbers is exact in float32, so that adding it needs no fused instruction.
func flush(x float32) float32 {
	if bits := math.Float32bits(x); bits&0x7f800000 == 0 {
		return math.Float32frombits(bits & 0x80000000)
	}
	return x
}
