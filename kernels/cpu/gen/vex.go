package main

import (
	"fmt"
	"strings"
)

// Go's assembler does not know the instructions of AMX, so they are written as
// bytes. Each line of bytes has beside it what a disassembler must say of them.

// regNumbers is the encoding of the registers that tile instructions address
// memory with. R13 and BP would need another form of address; they are left out.
var regNumbers = map[string]int{"AX": 0, "CX": 1, "DX": 2, "BX": 3, "SI": 6, "DI": 7,
	"R8": 8, "R9": 9, "R10": 10, "R11": 11, "R12": 12, "R14": 14, "R15": 15}

// atName is a register's name for a disassembler.
func atName(reg string) string { return "%r" + strings.ToLower(strings.TrimPrefix(reg, "R")) }

// Prefixes of the opcode.
const (
	none = iota
	x66
	xF3
	xF2
)

// vex writes one instruction of the 0F38 map. The fields are what the manual
// calls ModRM.reg, VEX.vvvv, and the bits that extend base and index.
func (g *gen) vex(prefix, opcode, reg, second int, index, base bool, operands []int, text string) {
	first := 0xe2 // R, X and B are stored inverted; R is never needed for 8 tiles
	if index {
		first &^= 0x40
	}
	if base {
		first &^= 0x20
	}
	var b strings.Builder
	for _, c := range append([]int{0xc4, first, (^second&15)<<3 | prefix, opcode}, operands...) {
		fmt.Fprintf(&b, "BYTE $0x%02x; ", c)
	}
	g.line("\t%s// %s", b.String(), text)
}

// tileMemory is a tile load or store: rows at base, base+index and so on.
func (g *gen) tileMemory(prefix, tile int, base, index string, load bool) {
	b, i := regNumbers[base], regNumbers[index]
	address := fmt.Sprintf("(%s,%s,1)", atName(base), atName(index))
	text := fmt.Sprintf("tilestored %%tmm%d,%s", tile, address)
	if load {
		text = fmt.Sprintf("tileloadd %s,%%tmm%d", address, tile)
	}
	g.vex(prefix, 0x4b, tile, 0, i > 7, b > 7, []int{tile<<3 | 4, (i&7)<<3 | b&7}, text)
}

func (g *gen) tileLoad(base, index string, tile int)  { g.tileMemory(xF2, tile, base, index, true) }
func (g *gen) tileStore(tile int, base, index string) { g.tileMemory(xF3, tile, base, index, false) }

func (g *gen) tileZero(tile int) {
	g.vex(xF2, 0x49, tile, 0, false, false, []int{0xc0 | tile<<3}, fmt.Sprintf("tilezero %%tmm%d", tile))
}

// tileConfig loads the configuration at the address in BX.
func (g *gen) tileConfig() {
	g.vex(none, 0x49, 0, 0, false, false, []int{0x03}, "ldtilecfg (%rbx)")
}

func (g *gen) tileRelease() {
	g.vex(none, 0x49, 0, 0, false, false, []int{0xc0}, "tilerelease")
}

// tileDot adds to tile c the products of tiles a and b: of bf16 numbers, or of
// signed bytes in a by unsigned ones in b.
func (g *gen) tileDot(name string, opcode, c, a, b int) {
	g.vex(xF3, opcode, c, b, false, false, []int{0xc0 | c<<3 | a}, fmt.Sprintf("%s %%tmm%d,%%tmm%d,%%tmm%d", name, b, a, c))
}

func (g *gen) dotBF16(c, a, b int)  { g.tileDot("tdpbf16ps", 0x5c, c, a, b) }
func (g *gen) dotBytes(c, a, b int) { g.tileDot("tdpbsud", 0x5e, c, a, b) }
