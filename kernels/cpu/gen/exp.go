package main

import "fmt"

// exp writes y = exp(x) for one unit, step by step as exp in scalar.go. x is
// left as it is; n, r and t are spoiled.
func (g *gen) exp(x, y, n, r, t string) {
	mem := func(name string) string { return name + "<>(SB)" }
	// constant is an instruction with a broadcast constant as its last source.
	constant := func(op, name, a, to string) {
		if g.wide {
			g.op("%s.BCST %s, %s, %s", op, mem(name), a, to)
			return
		}
		g.op("VBROADCASTSS %s, %s", mem(name), t)
		g.op("%s %s, %s, %s", op, t, a, to)
	}
	constant("VMULPS", "log2e", x, n)
	constant("VADDPS", "magic", n, n)
	constant("VSUBPS", "magic", n, n)
	constant("VMULPS", "ln2High", n, y)
	g.op("VSUBPS %s, %s, %s", y, x, r)
	constant("VMULPS", "ln2Low", n, y)
	g.op("VSUBPS %s, %s, %s", y, r, r)
	constant("VMULPS", "expC0", r, y)
	for i := 1; i <= 5; i++ {
		constant("VADDPS", fmt.Sprintf("expC%d", i), y, y)
		if i < 5 {
			g.op("VMULPS %s, %s, %s", r, y, y)
		}
	}
	g.op("VMULPS %s, %s, %s", r, r, t)
	g.op("VMULPS %s, %s, %s", t, y, y)
	g.op("VADDPS %s, %s, %s", r, y, y)
	constant("VADDPS", "onef", y, y)
	g.op("VCVTTPS2DQ %s, %s", n, n)
	constant("VPADDD", "bias", n, n)
	g.op("VPSLLD $23, %s, %s", n, n)
	g.op("VMULPS %s, %s, %s", n, y, y)
	g.op("VBROADCASTSS %s, %s", mem("expLeast"), t)
	g.keep("5", x, t, y, n) // not less: NaN stays
	g.op("VBROADCASTSS %s, %s", mem("expMost"), t)
	g.op("VBROADCASTSS %s, %s", mem("inf"), r)
	g.choose("0x1e", x, t, r, y)
}

func (g *gen) exponents() {
	g.begin("exponents", "the loop of exponents", 40)
	g.op("MOVQ lanes+0(FP), R8")
	g.op("MOVQ y+8(FP), DI")
	g.op("MOVQ x+16(FP), SI")
	g.op("MOVQ n+24(FP), CX")
	scale, most, sum := g.reg(), g.reg(), g.regs(g.units())
	x, y, n, r, t := g.v(g.reg()), g.v(g.reg()), g.v(g.reg()), g.v(g.reg()), g.v(g.reg())
	g.op("VBROADCASTSS scale+32(FP), %s", g.v(scale))
	g.op("VBROADCASTSS most+36(FP), %s", g.v(most))
	g.zero(sum...)
	g.loop("exponents", func() {
		g.each(func(u, offset int) {
			g.op("VMULPS %d(SI)(DX*1), %s, %s", offset, g.v(scale), x)
			g.op("VSUBPS %s, %s, %s", g.v(most), x, x)
			g.exp(x, y, n, r, t)
			g.op("VADDPS %s, %s, %s", y, g.v(sum[u]), g.v(sum[u]))
			g.op("VMOVUPS %s, %d(DI)(DX*1)", y, offset)
		})
	})
	g.each(func(u, offset int) { g.op("VMOVUPS %s, %d(R8)", g.v(sum[u]), offset) })
	g.end()
}

func (g *gen) siluMul() {
	g.begin("siluMul", "siluMul", 32)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ gate+8(FP), SI")
	g.op("MOVQ up+16(FP), R8")
	g.op("MOVQ n+24(FP), CX")
	sign := g.constant("sign")
	x, minus, y := g.v(g.reg()), g.v(g.reg()), g.v(g.reg())
	n, r, t := g.v(g.reg()), g.v(g.reg()), g.v(g.reg())
	g.loop("siluMul", func() {
		g.each(func(_, offset int) {
			g.op("VMOVUPS %d(SI)(DX*1), %s", offset, x)
			g.bits("VPXOR", g.v(sign), x, minus)
			g.exp(minus, y, n, r, t)
			g.op("VBROADCASTSS onef<>(SB), %s", t)
			g.op("VADDPS %s, %s, %s", t, y, y)
			g.op("VDIVPS %s, %s, %s", y, x, y)
			g.op("VBROADCASTSS expLeast<>(SB), %s", t)
			g.keep("5", x, t, y, n)
			g.op("VMULPS %d(R8)(DX*1), %s, %s", offset, y, y)
			g.op("VMOVUPS %s, %d(DI)(DX*1)", y, offset)
		})
	})
	g.end()
}

// scores writes the products of several queries with 16 keys. Queries are qs
// bytes apart, their results 1024 bytes, rows of keys ks bytes.
func (g *gen) scores(kind string, rows int) {
	g.begin(fmt.Sprintf("scores%s_%d_", kind, rows), "scores"+kind, 48)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ q+8(FP), SI")
	g.op("MOVQ qs+16(FP), R8")
	g.op("MOVQ k+24(FP), R9")
	g.op("MOVQ ks+32(FP), R10")
	g.op("MOVQ n+40(FP), CX")
	pointers := []string{"SI", "R11", "R12", "R13"}
	for i := 1; i < rows; i++ {
		g.op("LEAQ (%s)(R8*1), %s", pointers[i-1], pointers[i])
	}
	g.op("XORQ DX, DX")
	sums := make([][]int, rows)
	for i := range sums {
		sums[i] = g.regs(g.units())
		g.zero(sums[i]...)
	}
	key, b, t := g.regs(g.units()), g.reg(), g.reg()
	label := fmt.Sprintf("scores%s_%d_loop", kind, rows)
	g.line("%s:", label)
	g.each(func(u, offset int) { g.number(kind, "R9", "", offset, key[u]) })
	for i := range rows {
		g.op("VBROADCASTSS (%s)(DX*1), %s", pointers[i], g.v(b))
		for u := range g.units() {
			g.op("VMULPS %s, %s, %s", g.v(key[u]), g.v(b), g.v(t))
			g.op("VADDPS %s, %s, %s", g.v(t), g.v(sums[i][u]), g.v(sums[i][u]))
		}
	}
	g.op("ADDQ R10, R9")
	g.op("ADDQ $4, DX")
	g.op("DECQ CX")
	g.op("JNZ %s", label)
	for i := range rows {
		g.each(func(u, offset int) { g.op("VMOVUPS %s, %d(DI)", g.v(sums[i][u]), i*64+offset) })
	}
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

// weigh writes y[d] += p[t] · v[t][d] for n tokens and a multiple of 16
// columns.
func (g *gen) weigh(kind string) {
	g.begin("weigh"+kind, "weigh"+kind, 48)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ columns+8(FP), CX")
	g.op("MOVQ p+16(FP), SI")
	g.op("MOVQ n+24(FP), R8")
	g.op("MOVQ v+32(FP), R9")
	g.op("MOVQ vs+40(FP), R10")
	const wide = 4 // rows of 16 at a time, then one at a time
	for _, rows := range []int{wide, 1} {
		g.free = 0
		sums := make([][]int, rows)
		for i := range sums {
			sums[i] = g.regs(g.units())
		}
		v, b := g.reg(), g.reg()
		label := fmt.Sprintf("weigh%s_%d", kind, rows)
		g.line("%s:", label)
		g.op("CMPQ CX, $%d", 16*rows)
		g.op("JLT %s_end", label)
		for i := range rows {
			g.each(func(u, offset int) { g.op("VMOVUPS %d(DI), %s", i*64+offset, g.v(sums[i][u])) })
		}
		g.op("MOVQ R9, R11")
		g.op("XORQ DX, DX")
		g.line("%s_token:", label)
		g.op("VBROADCASTSS (SI)(DX*4), %s", g.v(b))
		for i := range rows {
			g.each(func(u, offset int) {
				g.number(kind, "R11", "", i*64+offset, v)
				g.op("VMULPS %s, %s, %s", g.v(v), g.v(b), g.v(v))
				g.op("VADDPS %s, %s, %s", g.v(v), g.v(sums[i][u]), g.v(sums[i][u]))
			})
		}
		g.op("ADDQ R10, R11")
		g.op("INCQ DX")
		g.op("CMPQ DX, R8")
		g.op("JLT %s_token", label)
		for i := range rows {
			g.each(func(u, offset int) { g.op("VMOVUPS %s, %d(DI)", g.v(sums[i][u]), i*64+offset) })
		}
		size := 64
		if kind == "BF16" {
			size = 32
		}
		g.op("ADDQ $%d, DI", 64*rows)
		g.op("ADDQ $%d, R9", size*rows)
		g.op("SUBQ $%d, CX", 16*rows)
		g.op("JMP %s", label)
		g.line("%s_end:", label)
	}
	g.end()
}
