//go:build linux && amd64

package main

import (
	"errors"
	"fmt"
)

// errOther says that the bytes are no instruction of AMX.
var errOther = errors.New("not an instruction of AMX")

// instruction is one that amxrun knows, with the registers it names.
type instruction struct {
	kind        kind
	length      int
	tile        int // ModRM.reg
	first       int // ModRM.rm: the rows of a product
	second      int // VEX.vvvv: the columns of a product
	base, index int // general registers by number; index -1: none
}

// kind is the opcode with its prefix and form.
type kind struct {
	opcode, prefix byte
	memory         bool
}

// Prefixes, as VEX.pp counts them.
const (
	noPrefix = iota
	prefix66
	prefixF3
	prefixF2
)

var (
	loadConfig = kind{0x49, noPrefix, true}
	release    = kind{0x49, noPrefix, false}
	zeroTile   = kind{0x49, prefixF2, false}
	loadTile   = kind{0x4b, prefixF2, true}
	storeTile  = kind{0x4b, prefixF3, true}
	dotHalves  = kind{0x5c, prefixF3, false}
	dotBytes   = kind{0x5e, prefixF3, false}
)

// decode reads the instruction at the start of b: a three-byte VEX prefix of
// map 0F38, 128 bits, W0.
func decode(b []byte) (instruction, error) {
	if b[0] != 0xc4 || b[1]&0x1f != 2 || b[2]&0x84 != 0 {
		return instruction{}, errOther
	}
	mod, reg, rm := b[4]>>6, int(b[4]>>3&7), int(b[4]&7)
	i := instruction{kind: kind{b[3], b[2] & 3, mod != 3}, length: 5, tile: reg, first: rm, second: int(^b[2] >> 3 & 15), index: -1}
	switch i.kind {
	case release, zeroTile, dotHalves, dotBytes:
		return i, nil
	case loadConfig, loadTile, storeTile:
	default:
		return instruction{}, errOther
	}
	extend := int(^b[1]>>5&1) << 3
	i.base = rm | extend
	if rm == 4 { // a scale, an index and a base follow
		i.length++
		i.base = int(b[5]&7) | extend
		if i.index = int(b[5]>>3&7) | int(^b[1]>>6&1)<<3; i.index == 4 {
			i.index = -1
		}
		if b[5]>>6 != 0 {
			return instruction{}, fmt.Errorf("% x: a scaled index; the kernels use none", b[:6])
		}
	}
	if mod != 0 || i.base&7 == 5 {
		return instruction{}, fmt.Errorf("% x: an address with a displacement; the kernels use none", b[:6])
	}
	return i, nil
}

// run does what the instruction does. register is the value of a general
// register by its number.
func (i instruction) run(t *tiles, m memory, register func(int) uint64) error {
	if !t.configured && i.kind != loadConfig && i.kind != release {
		return errors.New("a tile is used before the tiles are configured")
	}
	var stride uint64
	if i.index >= 0 {
		stride = register(i.index)
	}
	switch i.kind {
	case loadConfig:
		return t.configure(m, register(i.base))
	case release:
		*t = tiles{}
	case zeroTile:
		t.data[i.tile] = [16][64]byte{}
	case loadTile:
		return t.load(m, i.tile, register(i.base), stride)
	case storeTile:
		return t.store(m, i.tile, register(i.base), stride)
	case dotHalves, dotBytes:
		if err := t.fits(i.tile, i.first, i.second); err != nil {
			return err
		}
		if i.kind == dotBytes {
			t.dotBytes(i.tile, i.first, i.second)
		} else {
			t.dotBF16(i.tile, i.first, i.second)
		}
	}
	return nil
}
