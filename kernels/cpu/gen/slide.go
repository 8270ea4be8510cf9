package main

// slide writes the loop of slide. Columns are taken 64 at a time, so that sums of
// one tap need not wait for those of the one before, then 16 at a time.
func (g *gen) slide() {
	g.begin("slide", "slide", 56)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ w+16(FP), R8")
	g.op("MOVQ n+24(FP), CX")
	g.op("MOVQ taps+32(FP), R9")
	g.op("MOVQ xs+40(FP), R10")
	g.op("MOVQ ws+48(FP), R11")
	sums, t := g.regs(64/g.lanes()), g.reg()
	for _, columns := range []int{64, 16} {
		some := sums[:columns/g.lanes()]
		g.line("slide_%d:", columns)
		g.op("CMPQ CX, $%d", columns)
		g.op("JL slide_%d_end", columns)
		for u, sum := range some {
			g.op("VMOVUPS %d(DI), %s", 4*u*g.lanes(), g.v(sum))
		}
		g.op("MOVQ SI, R12")
		g.op("MOVQ R8, R13")
		g.op("MOVQ R9, DX")
		g.line("slide_%d_taps:", columns)
		for u, sum := range some {
			g.op("VMOVUPS %d(R12), %s", 4*u*g.lanes(), g.v(t))
			g.op("VMULPS %d(R13), %s, %s", 4*u*g.lanes(), g.v(t), g.v(t))
			g.op("VADDPS %s, %s, %s", g.v(t), g.v(sum), g.v(sum))
		}
		g.op("ADDQ R10, R12")
		g.op("ADDQ R11, R13")
		g.op("SUBQ $1, DX")
		g.op("JG slide_%d_taps", columns)
		for u, sum := range some {
			g.op("VMOVUPS %s, %d(DI)", g.v(sum), 4*u*g.lanes())
		}
		g.op("ADDQ $%d, DI", 4*columns)
		g.op("ADDQ $%d, SI", 4*columns)
		g.op("ADDQ $%d, R8", 4*columns)
		g.op("SUBQ $%d, CX", columns)
		g.op("JMP slide_%d", columns)
		g.line("slide_%d_end:", columns)
	}
	g.end()
}
