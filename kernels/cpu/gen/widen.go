package main

// widenInt8 writes y = x of int8 numbers.
func (g *gen) widenInt8() {
	g.begin("widenInt8_", "widenInt8", 24)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	v := g.reg()
	g.line("widenInt8_loop:")
	g.each(func(u, offset int) {
		g.op("VPMOVSXBD %d(SI), %s", offset/4, g.v(v))
		g.op("VCVTDQ2PS %s, %s", g.v(v), g.v(v))
		g.op("VMOVUPS %s, %d(DI)", g.v(v), offset)
	})
	g.op("ADDQ $16, SI")
	g.op("ADDQ $64, DI")
	g.op("SUBQ $16, CX")
	g.op("JG widenInt8_loop")
	g.end()
}
