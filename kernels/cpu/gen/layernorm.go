package main

// sum writes the loop of sum.
func (g *gen) sum() {
	g.begin("sum", "the loop of sum", 24)
	g.op("MOVQ lanes+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	sum := g.regs(g.units())
	g.zero(sum...)
	g.loop("sum", func() {
		g.each(func(u, offset int) { g.op("VADDPS %d(SI)(DX*1), %s, %s", offset, g.v(sum[u]), g.v(sum[u])) })
	})
	g.each(func(u, offset int) { g.op("VMOVUPS %s, %d(DI)", g.v(sum[u]), offset) })
	g.end()
}

// deviations writes the loop of deviations.
func (g *gen) deviations() {
	g.begin("deviations", "the loop of deviations", 36)
	g.op("MOVQ sums+0(FP), DI")
	g.op("MOVQ squares+8(FP), R8")
	g.op("MOVQ x+16(FP), SI")
	g.op("MOVQ n+24(FP), CX")
	mean, sum, square, t := g.reg(), g.regs(g.units()), g.regs(g.units()), g.regs(g.units())
	g.op("VBROADCASTSS mean+32(FP), %s", g.v(mean))
	g.zero(sum...)
	g.zero(square...)
	g.loop("deviations", func() {
		g.each(func(u, offset int) {
			g.op("VMOVUPS %d(SI)(DX*1), %s", offset, g.v(t[u]))
			g.op("VSUBPS %s, %s, %s", g.v(mean), g.v(t[u]), g.v(t[u]))
			g.op("VADDPS %s, %s, %s", g.v(t[u]), g.v(sum[u]), g.v(sum[u]))
			g.op("VMULPS %s, %s, %s", g.v(t[u]), g.v(t[u]), g.v(t[u]))
			g.op("VADDPS %s, %s, %s", g.v(t[u]), g.v(square[u]), g.v(square[u]))
		})
	})
	g.each(func(u, offset int) {
		g.op("VMOVUPS %s, %d(DI)", g.v(sum[u]), offset)
		g.op("VMOVUPS %s, %d(R8)", g.v(square[u]), offset)
	})
	g.end()
}

// centre writes the loop of centre.
func (g *gen) centre() {
	g.begin("centre", "centre", 52)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ w+16(FP), R8")
	g.op("MOVQ b+24(FP), R9")
	g.op("MOVQ n+32(FP), CX")
	mean, rest, scale, t := g.reg(), g.reg(), g.reg(), g.regs(g.units())
	g.op("VBROADCASTSS mean+40(FP), %s", g.v(mean))
	g.op("VBROADCASTSS rest+44(FP), %s", g.v(rest))
	g.op("VBROADCASTSS scale+48(FP), %s", g.v(scale))
	g.loop("centre", func() {
		g.each(func(u, offset int) {
			g.op("VMOVUPS %d(SI)(DX*1), %s", offset, g.v(t[u]))
			g.op("VSUBPS %s, %s, %s", g.v(mean), g.v(t[u]), g.v(t[u]))
			g.op("VSUBPS %s, %s, %s", g.v(rest), g.v(t[u]), g.v(t[u]))
			g.op("VMULPS %s, %s, %s", g.v(scale), g.v(t[u]), g.v(t[u]))
			g.op("VMULPS %d(R8)(DX*1), %s, %s", offset, g.v(t[u]), g.v(t[u]))
			g.op("VADDPS %d(R9)(DX*1), %s, %s", offset, g.v(t[u]), g.v(t[u]))
			g.op("VMOVUPS %s, %d(DI)(DX*1)", g.v(t[u]), offset)
		})
	})
	g.end()
}
