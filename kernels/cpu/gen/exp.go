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
