package main

import "fmt"

// Registers of a matrix kernel: the tile struct in AX, rows of activations at
// SI, DI, R12, R13 with the offset DX, tiles at R8 to R11, blocks left in CX.
var (
	rowRegs  = []string{"SI", "DI", "R12", "R13"}
	tileRegs = []string{"R8", "R9", "R10", "R11"}
)

// loader brings a unit of weights of column k of the block into register to.
type loader func(g *gen, u, k, to int)

// open begins a matrix kernel: name_RxT.
func (g *gen) open(kind string, s shape) (name string) {
	name = fmt.Sprintf("multiply%s_%v_", kind, s)
	g.begin(name, fmt.Sprintf("multiply%s for %d rows and %d tiles", kind, s.rows, s.tiles), 8)
	g.op("MOVQ t+0(FP), AX")
	g.op("MOVQ 16(AX), SI")
	g.op("MOVQ 24(AX), DX")
	for i := 1; i < s.rows; i++ {
		g.op("LEAQ (%s)(DX*1), %s", rowRegs[i-1], rowRegs[i])
	}
	g.op("MOVQ 0(AX), R8")
	g.op("MOVQ 8(AX), DX")
	for i := 1; i < s.tiles; i++ {
		g.op("LEAQ (%s)(DX*1), %s", tileRegs[i-1], tileRegs[i])
	}
	g.op("MOVQ 32(AX), CX")
	g.op("XORQ DX, DX")
	return name
}

// store writes the totals, (rows, units), and ends the kernel.
func (g *gen) store(total [][]int) {
	g.op("MOVQ t+0(FP), AX")
	g.op("MOVQ 40(AX), BX")
	g.op("MOVQ 48(AX), DX")
	for i, row := range total {
		for u, r := range row {
			g.op("VMOVUPS %s, %d(BX)", g.v(r), u*g.lanes()*4)
		}
		if i < len(total)-1 {
			g.op("ADDQ DX, BX")
		}
	}
	g.end()
}

// grid takes rows by units registers and clears them.
func (g *gen) grid(s shape) [][]int {
	m := make([][]int, s.rows)
	for i := range m {
		m[i] = g.regs(s.tiles * g.units())
		g.zero(m[i]...)
	}
	return m
}

// at is the address of unit u in a row of a tile: rowBytes a row of 16 lanes.
func (g *gen) at(u, row, rowBytes int) string {
	return fmt.Sprintf("%d(%s)", row*rowBytes+u%g.units()*rowBytes/g.units(), tileRegs[u/g.units()])
}

// ahead asks for the weights a page further on: the processor's own guesses end
// with the page. at is the byte within the rows that are read at once.
func (g *gen) ahead(s shape, u, at int) {
	if s.ahead && u%g.units() == 0 && at%64 == 0 {
		g.op("PREFETCHT0 %d(%s)", 4096+at, tileRegs[u/g.units()])
	}
}

func loadF32(g *gen, u, k, to int) { g.op("VMOVUPS %s, %s", g.at(u, k, 64), g.v(to)) }

func loadF16(g *gen, u, k, to int) { g.op("VCVTPH2PS %s, %s", g.at(u, k, 32), g.v(to)) }

// loadFP8 moves the bits of an e4m3 to where a half has them, which divides
// its value by 256.
func loadFP8(g *gen, u, k, to int) {
	g.op("VPMOVSXBW %s, %s", g.at(u, k, 16), g.half(to))
	g.op("VPSLLW $7, %s, %s", g.half(to), g.half(to))
	g.op("VPAND %s, %s, %s", g.half(0), g.half(to), g.half(to)) // 0 holds the mask
	g.op("VCVTPH2PS %s, %s", g.half(to), g.v(to))
}

var rowBytes = map[string]int{"F32": 64, "F16": 32, "FP8": 16}

// floats writes a kernel whose rows have one column. Products are rounded
// before they are added, unless they are exact: then fusing changes nothing.
func (g *gen) floats(kind string, s shape, load loader, exact bool) {
	name := g.open(kind, s)
	units := s.tiles * g.units()
	if kind == "FP8" {
		g.constant("halves")
	}
	temp := g.reg()
	b := g.regs(1)[0]
	w := []int{temp}
	if s.rows > 1 || exact {
		w = []int{g.reg()}
	}
	total := g.grid(s)
	var sums [2][][]int // of even and odd columns
	sums[0], sums[1] = g.grid(s), g.grid(s)
	g.line("%sblock:", name)
	g.clear(sums[0], sums[1])
	const columns = 8
	g.line("%sinner:", name)
	for k := range columns {
		for u := range units {
			load(g, u, k, w[0])
			g.ahead(s, u, k*rowBytes[kind])
			for i := range s.rows {
				if u == 0 || s.rows > 1 {
					g.op("VBROADCASTSS %d(%s)(DX*1), %s", 4*k, rowRegs[i], g.v(b))
				}
				to := g.v(sums[k%2][i][u])
				if exact {
					g.op("VFMADD231PS %s, %s, %s", g.v(w[0]), g.v(b), to)
				} else {
					g.op("VMULPS %s, %s, %s", g.v(w[0]), g.v(b), g.v(temp))
					g.op("VADDPS %s, %s, %s", g.v(temp), to, to)
				}
			}
		}
	}
	g.inner(name, s, columns*rowBytes[kind], 4*columns, 128)
	g.finishBlock(name, total, sums)
}

// inner goes on within a block, until the offset into the activations is a
// multiple of whole.
func (g *gen) inner(name string, s shape, bytes, offset, whole int) {
	for t := range s.tiles {
		g.op("ADDQ $%d, %s", bytes, tileRegs[t])
	}
	g.op("ADDQ $%d, DX", offset)
	g.op("TESTQ $%d, DX", whole-1)
	g.op("JNZ %sinner", name)
}

// finishBlock adds even and odd sums to the total and goes on to the next
// block of 32 columns.
func (g *gen) finishBlock(name string, total [][]int, sums [2][][]int) {
	for i := range total {
		for u := range total[i] {
			even, odd, t := g.v(sums[0][i][u]), g.v(sums[1][i][u]), g.v(total[i][u])
			g.op("VADDPS %s, %s, %s", odd, even, even)
			g.op("VADDPS %s, %s, %s", even, t, t)
		}
	}
	g.op("DECQ CX")
	g.op("JNZ %sblock", name)
	g.store(total)
}

// bf16 writes a kernel whose rows have two columns, the even one in the low
// half of each dword. Products of bf16 numbers are exact in float32.
func (g *gen) bf16(s shape) {
	name := g.open("BF16", s)
	units := s.tiles * g.units()
	even, odd := g.reg(), g.reg()
	b := g.reg()
	b2, mask := -1, -1
	if s.rows == 1 {
		b2 = g.reg()
	}
	if g.wide {
		mask = g.constant("upper")
	}
	total := g.grid(s)
	var sums [2][][]int
	sums[0], sums[1] = g.grid(s), g.grid(s)
	g.line("%sblock:", name)
	g.clear(sums[0], sums[1])
	const rows = 4
	g.line("%sinner:", name)
	for r := range rows {
		if s.rows == 1 {
			g.op("VBROADCASTSS %d(SI)(DX*1), %s", 8*r, g.v(b))
			g.op("VBROADCASTSS %d(SI)(DX*1), %s", 8*r+4, g.v(b2))
		}
		for u := range units {
			g.op("VMOVUPS %s, %s", g.at(u, r, 64), g.v(odd))
			g.ahead(s, u, 64*r)
			g.op("VPSLLD $16, %s, %s", g.v(odd), g.v(even))
			if g.wide {
				g.op("VPANDD %s, %s, %s", g.v(mask), g.v(odd), g.v(odd))
			} else {
				g.op("VPSRLD $16, %s, %s", g.v(odd), g.v(odd))
				g.op("VPSLLD $16, %s, %s", g.v(odd), g.v(odd))
			}
			for i := range s.rows {
				if s.rows == 1 {
					g.op("VFMADD231PS %s, %s, %s", g.v(even), g.v(b), g.v(sums[0][i][u]))
					g.op("VFMADD231PS %s, %s, %s", g.v(odd), g.v(b2), g.v(sums[1][i][u]))
					continue
				}
				g.op("VBROADCASTSS %d(%s)(DX*1), %s", 8*r, rowRegs[i], g.v(b))
				g.op("VFMADD231PS %s, %s, %s", g.v(even), g.v(b), g.v(sums[0][i][u]))
				g.op("VBROADCASTSS %d(%s)(DX*1), %s", 8*r+4, rowRegs[i], g.v(b))
				g.op("VFMADD231PS %s, %s, %s", g.v(odd), g.v(b), g.v(sums[1][i][u]))
			}
		}
	}
	g.inner(name, s, 64*rows, 8*rows, 128)
	g.finishBlock(name, total, sums)
}
