package main

import "fmt"

// rowKernels writes what works along rows. Lengths are multiples of 16 here;
// the Go side does what is left over.
func (g *gen) rowKernels() {
	g.sumSquares()
	g.normalise()
	g.sum()
	g.deviations()
	g.centre()
	g.add()
	g.operands()
	g.magnitude()
	g.quantise()
	g.greatest()
	g.exponents()
	g.siluMul()
	for _, s := range g.fusedShapes() {
		g.fused("F32", s)
		g.fused("BF16", s)
	}
	g.gelu()
	g.geluMul()
	g.widen()
	g.widenInt8()
	g.widenBF16()
	g.slide()
}

// each repeats body for every unit of a row of 16, with its byte offset.
func (g *gen) each(body func(u, offset int)) {
	for u := range g.units() {
		body(u, u*g.lanes()*4)
	}
}

// loop runs body for each 16 of the CX numbers, with DX as their byte offset.
func (g *gen) loop(name string, body func()) {
	g.op("XORQ DX, DX")
	g.line("%s_loop:", name)
	body()
	g.op("ADDQ $64, DX")
	g.op("SUBQ $16, CX")
	g.op("JG %s_loop", name)
}

func (g *gen) sumSquares() {
	g.begin("sumSquares", "the loop of sumSquares", 24)
	g.op("MOVQ lanes+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	sum, t := g.regs(g.units()), g.reg()
	g.zero(sum...)
	g.loop("sumSquares", func() {
		g.each(func(u, offset int) {
			g.op("VMOVUPS %d(SI)(DX*1), %s", offset, g.v(t))
			g.op("VMULPS %s, %s, %s", g.v(t), g.v(t), g.v(t))
			g.op("VADDPS %s, %s, %s", g.v(t), g.v(sum[u]), g.v(sum[u]))
		})
	})
	g.each(func(u, offset int) { g.op("VMOVUPS %s, %d(DI)", g.v(sum[u]), offset) })
	g.end()
}

func (g *gen) normalise() {
	g.begin("normalise", "normalise", 36)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ w+16(FP), R8")
	g.op("MOVQ n+24(FP), CX")
	scale, t := g.reg(), g.reg()
	g.op("VBROADCASTSS scale+32(FP), %s", g.v(scale))
	g.loop("normalise", func() {
		g.each(func(_, offset int) {
			g.op("VMULPS %d(SI)(DX*1), %s, %s", offset, g.v(scale), g.v(t))
			g.op("VMULPS %d(R8)(DX*1), %s, %s", offset, g.v(t), g.v(t))
			g.op("VMOVUPS %s, %d(DI)(DX*1)", g.v(t), offset)
		})
	})
	g.end()
}

func (g *gen) add() {
	g.begin("add", "add", 24)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	t := g.reg()
	g.loop("add", func() {
		g.each(func(_, offset int) {
			g.op("VMOVUPS %d(DI)(DX*1), %s", offset, g.v(t))
			g.op("VADDPS %d(SI)(DX*1), %s, %s", offset, g.v(t), g.v(t))
			g.op("VMOVUPS %s, %d(DI)(DX*1)", g.v(t), offset)
		})
	})
	g.end()
}

func (g *gen) operands() {
	g.begin("operands", "operands", 24)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	upper, round, one := g.constant("upper"), g.constant("round"), g.constant("one")
	quiet, magnitude, tiny := g.constant("quiet"), g.constant("magnitude"), g.constant("tiny")
	x, t, m := g.reg(), g.reg(), g.reg()
	g.loop("operands", func() {
		g.each(func(_, offset int) {
			g.op("VMOVUPS %d(SI)(DX*1), %s", offset, g.v(x))
			g.op("VPSRLD $16, %s, %s", g.v(x), g.v(t))
			g.bits("VPAND", g.v(one), g.v(t), g.v(t))
			g.op("VPADDD %s, %s, %s", g.v(round), g.v(t), g.v(t))
			g.op("VPADDD %s, %s, %s", g.v(x), g.v(t), g.v(t))
			g.bits("VPOR", g.v(quiet), g.v(x), g.v(m)) // if it is NaN
			g.choose("3", g.v(x), g.v(x), g.v(m), g.v(t))
			g.bits("VPAND", g.v(upper), g.v(t), g.v(t))
			g.bits("VPAND", g.v(magnitude), g.v(t), g.v(m))
			g.keep("5", g.v(m), g.v(tiny), g.v(t), g.v(x))
			g.op("VMOVUPS %s, %d(DI)(DX*1)", g.v(t), offset)
		})
	})
	g.end()
}

// choose copies from to where a and b compare by predicate.
func (g *gen) choose(predicate, a, b, from, to string) {
	if g.wide {
		g.op("VCMPPS $%s, %s, %s, K1", predicate, b, a)
		g.op("VMOVAPS %s, K1, %s", from, to)
		return
	}
	g.op("VCMPPS $%s, %s, %s, Y15", predicate, b, a)
	g.op("VBLENDVPS Y15, %s, %s, %s", from, to, to)
}

// keep leaves to where a and b compare by predicate, and zero elsewhere.
func (g *gen) keep(predicate, a, b, to, temp string) {
	if g.wide {
		g.op("VCMPPS $%s, %s, %s, K1", predicate, b, a)
		g.op("VMOVAPS.Z %s, K1, %s", to, to)
		return
	}
	g.op("VCMPPS $%s, %s, %s, %s", predicate, b, a, temp)
	g.op("VANDPS %s, %s, %s", temp, to, to)
}

// magnitude is the greatest |x| as bits, lane by lane.
func (g *gen) magnitude() {
	g.begin("magnitude", "the first loop of num.QuantiseRow", 24)
	g.op("MOVQ lanes+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	mask, most, t := g.constant("magnitude"), g.regs(g.units()), g.reg()
	g.zero(most...)
	g.loop("magnitude", func() {
		g.each(func(u, offset int) {
			g.bits("VPAND", fmt.Sprintf("%d(SI)(DX*1)", offset), g.v(mask), g.v(t))
			g.op("VPMAXUD %s, %s, %s", g.v(t), g.v(most[u]), g.v(most[u]))
		})
	})
	g.each(func(u, offset int) { g.op("VMOVUPS %s, %d(DI)", g.v(most[u]), offset) })
	g.end()
}

// quantise rounds x · inverse to int8 and sums it lane by lane.
func (g *gen) quantise() {
	g.begin("quantise", "the second loop of num.QuantiseRow", 36)
	g.op("MOVQ q+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	g.op("MOVQ lanes+24(FP), R8")
	inverse, sum, t := g.reg(), g.regs(g.units()), g.regs(g.units())
	g.op("VBROADCASTSS inverse+32(FP), %s", g.v(inverse))
	g.zero(sum...)
	g.loop("quantise", func() {
		g.each(func(u, offset int) {
			g.op("VMULPS %d(SI)(DX*1), %s, %s", offset, g.v(inverse), g.v(t[u]))
			g.op("VCVTPS2DQ %s, %s", g.v(t[u]), g.v(t[u])) // to nearest even
			g.op("VPADDD %s, %s, %s", g.v(t[u]), g.v(sum[u]), g.v(sum[u]))
		})
		if g.wide {
			g.op("VPMOVDB %s, (DI)", g.v(t[0]))
		} else {
			g.op("VPACKSSDW %s, %s, %s", g.v(t[1]), g.v(t[0]), g.v(t[0]))
			g.op("VPERMQ $0xd8, %s, %s", g.v(t[0]), g.v(t[0]))
			g.op("VEXTRACTI128 $1, %s, %s", g.v(t[0]), g.half(t[1]))
			g.op("VPACKSSWB %s, %s, %s", g.half(t[1]), g.half(t[0]), g.half(t[0]))
			g.op("VMOVDQU %s, (DI)", g.half(t[0]))
		}
		g.op("ADDQ $16, DI")
	})
	g.each(func(u, offset int) { g.op("VMOVUPS %s, %d(R8)", g.v(sum[u]), offset) })
	g.end()
}

func (g *gen) greatest() {
	g.begin("greatest", "greatest, lane by lane", 24)
	g.op("MOVQ lanes+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	most, t := g.regs(g.units()), g.reg()
	for _, r := range most {
		g.op("VBROADCASTSS (SI), %s", g.v(r))
	}
	g.loop("greatest", func() {
		g.each(func(u, offset int) {
			g.op("VMOVUPS %d(SI)(DX*1), %s", offset, g.v(t))
			g.op("VMAXPS %s, %s, %s", g.v(most[u]), g.v(t), g.v(most[u]))
		})
	})
	g.each(func(u, offset int) { g.op("VMOVUPS %s, %d(DI)", g.v(most[u]), offset) })
	g.end()
}
