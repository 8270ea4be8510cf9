package main

import "fmt"

// fusedShapes are rows by tiles of the kernels of attention, the largest first.
func (g *gen) fusedShapes() []shape {
	if g.wide {
		return []shape{{rows: 8, tiles: 2}, {rows: 4, tiles: 2}, {rows: 2, tiles: 2}, {rows: 1, tiles: 2}, {rows: 8, tiles: 1}, {rows: 4, tiles: 1}, {rows: 2, tiles: 1}, {rows: 1, tiles: 1}}
	}
	return []shape{{rows: 4, tiles: 1}, {rows: 2, tiles: 1}, {rows: 1, tiles: 1}}
}

// fused writes y += a · b for some rows of a and one or two tiles of b, with its
// rows of 16 numbers: rows of y at DI and R8 apart, those of a at SI, R12 and R13,
// R9 apart, tiles at BX and R10 behind it, R11 from row to row, rows left in CX.
func (g *gen) fused(kind string, s shape) {
	name := fmt.Sprintf("fused%s_%v_", kind, s)
	g.begin(name, fmt.Sprintf("fused%s for %d rows and %d tiles", kind, s.rows, s.tiles), 8)
	g.op("MOVQ f+0(FP), AX")
	for i, r := range []string{"DI", "R8", "SI", "R9", "BX", "R10", "R11", "CX"} {
		g.op("MOVQ %d(AX), %s", 8*i, r)
	}
	from := []string{"SI", "R12", "R13"}[:(s.rows+2)/3]
	for i := 1; i < len(from); i++ {
		g.op("LEAQ (%s)(R9*2), %s", from[i-1], from[i])
		g.op("ADDQ R9, %s", from[i])
	}
	sums, weights, b := make([][]int, s.rows), g.regs(s.tiles*g.units()), g.reg()
	each := func(instruction func(sum string, offset int)) {
		g.op("MOVQ DI, DX")
		for i := range sums {
			for u, r := range sums[i] {
				instruction(g.v(r), u*g.lanes()*4)
			}
			if i < s.rows-1 {
				g.op("ADDQ R8, DX")
			}
		}
	}
	for i := range sums {
		sums[i] = g.regs(s.tiles * g.units())
	}
	each(func(sum string, offset int) { g.op("VMOVUPS %d(DX), %s", offset, sum) })
	g.line("%sloop:", name)
	for t := range s.tiles {
		g.each(func(u, offset int) {
			g.number(kind, "BX", []string{"", "(R10*1)"}[t], offset, weights[t*g.units()+u])
		})
	}
	for i := range s.rows {
		g.op("VBROADCASTSS %s, %s", strided(from, "R9", i, 0), g.v(b))
		for u, w := range weights {
			g.op("VFMADD231PS %s, %s, %s", g.v(w), g.v(b), g.v(sums[i][u]))
		}
	}
	g.op("ADDQ R11, BX")
	for _, r := range from {
		g.op("ADDQ $4, %s", r)
	}
	g.op("DECQ CX")
	g.op("JNZ %sloop", name)
	each(func(sum string, offset int) { g.op("VMOVUPS %s, %d(DX)", sum, offset) })
	g.end()
}

// number loads a unit of float32 or bf16 numbers; offset is in float32.
func (g *gen) number(kind, base, index string, offset, to int) {
	if kind == "F32" {
		g.op("VMOVUPS %d(%s)%s, %s", offset, base, index, g.v(to))
		return
	}
	g.op("VPMOVZXWD %d(%s)%s, %s", offset/2, base, index, g.v(to))
	g.op("VPSLLD $16, %s, %s", g.v(to), g.v(to))
}

// widenBF16 writes y = x of bf16 numbers.
func (g *gen) widenBF16() {
	g.begin("widenBF16_", "widenBF16", 24)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	v := g.reg()
	g.line("widenBF16_loop:")
	g.each(func(_, offset int) {
		g.number("BF16", "SI", "", offset, v)
		g.op("VMOVUPS %s, %d(DI)", g.v(v), offset)
	})
	g.op("ADDQ $32, SI")
	g.op("ADDQ $64, DI")
	g.op("SUBQ $16, CX")
	g.op("JG widenBF16_loop")
	g.end()
}
