package main

// geluMul writes geluTanh(gate) · up, step by step as geluTanh and tanh in
// scalar.go: both ways to tanh are computed, and the one that x wants is taken.
func (g *gen) geluMul() {
	g.begin("geluMul", "geluMul", 32)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ gate+8(FP), SI")
	g.op("MOVQ up+16(FP), R8")
	g.op("MOVQ n+24(FP), CX")
	x, z, w, y := g.v(g.reg()), g.v(g.reg()), g.v(g.reg()), g.v(g.reg())
	n, r, t, p := g.v(g.reg()), g.v(g.reg()), g.v(g.reg()), g.v(g.reg())
	// with is an instruction whose second source is a constant.
	with := func(op, name, a, to string) {
		g.op("VBROADCASTSS %s<>(SB), %s", name, t)
		g.op("%s %s, %s, %s", op, t, a, to)
	}
	g.loop("geluMul", func() {
		g.each(func(_, offset int) {
			g.op("VMOVUPS %d(SI)(DX*1), %s", offset, x)
			with("VMULPS", "geluCube", x, z)
			g.op("VMULPS %s, %s, %s", x, x, w)
			g.op("VMULPS %s, %s, %s", w, z, z)
			g.op("VADDPS %s, %s, %s", z, x, z)
			with("VMULPS", "gelu", z, z)
			// 1 - 2 / (1 + exp(2·z))
			g.op("VADDPS %s, %s, %s", z, z, w)
			g.exp(w, y, n, r, t)
			with("VADDPS", "onef", y, y)
			g.op("VBROADCASTSS two<>(SB), %s", t)
			g.op("VDIVPS %s, %s, %s", y, t, y)
			g.op("VBROADCASTSS onef<>(SB), %s", t)
			g.op("VSUBPS %s, %s, %s", y, t, y)
			// z + z·s·(((s·C0 - C1)·s + C2)·s - C3) with s = z·z
			g.op("VMULPS %s, %s, %s", z, z, w)
			with("VMULPS", "tanhC0", w, p)
			with("VSUBPS", "tanhC1", p, p)
			g.op("VMULPS %s, %s, %s", w, p, p)
			with("VADDPS", "tanhC2", p, p)
			g.op("VMULPS %s, %s, %s", w, p, p)
			with("VSUBPS", "tanhC3", p, p)
			g.op("VMULPS %s, %s, %s", w, p, p)
			g.op("VMULPS %s, %s, %s", z, p, p)
			g.op("VADDPS %s, %s, %s", p, z, p)
			g.op("VBROADCASTSS magnitude<>(SB), %s", t)
			g.bits("VPAND", t, z, w)
			g.op("VBROADCASTSS quarter<>(SB), %s", t)
			g.choose("0x11", w, t, p, y)
			// ±1 beyond 10
			g.op("VBROADCASTSS sign<>(SB), %s", t)
			g.bits("VPAND", t, z, p)
			g.op("VBROADCASTSS onef<>(SB), %s", t)
			g.bits("VPOR", t, p, p)
			g.op("VBROADCASTSS ten<>(SB), %s", t)
			g.choose("0x1e", w, t, p, y)
			with("VADDPS", "onef", y, y)
			with("VMULPS", "half", x, x)
			g.op("VMULPS %s, %s, %s", y, x, y)
			g.op("VMULPS %d(R8)(DX*1), %s, %s", offset, y, y)
			g.op("VMOVUPS %s, %d(DI)(DX*1)", y, offset)
		})
	})
	g.end()
}

// gelu writes y = gelu(x), step by step as in scalar.go.
func (g *gen) gelu() {
	g.begin("gelu", "gelu", 24)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	sign := g.constant("sign")
	x, z, y, n, r := g.v(g.reg()), g.v(g.reg()), g.v(g.reg()), g.v(g.reg()), g.v(g.reg())
	t, p, u := g.v(g.reg()), g.v(g.reg()), g.v(g.reg())
	with := func(op, name, a, to string) {
		g.op("VBROADCASTSS %s<>(SB), %s", name, t)
		g.op("%s %s, %s, %s", op, t, a, to)
	}
	g.loop("gelu", func() {
		g.each(func(_, offset int) {
			g.op("VMOVUPS %d(SI)(DX*1), %s", offset, x)
			with("VPAND"+map[bool]string{true: "D"}[g.wide], "magnitude", x, z)
			with("VMULPS", "rootHalf", z, z)
			with("VMULPS", "erfScale", z, u)
			with("VADDPS", "onef", u, u)
			g.op("VBROADCASTSS onef<>(SB), %s", t)
			g.op("VDIVPS %s, %s, %s", u, t, u)
			with("VMULPS", "erfC0", u, p)
			for i, op := range []string{"VSUBPS", "VADDPS", "VSUBPS", "VADDPS"} {
				with(op, "erfC"+string(rune('1'+i)), p, p)
				g.op("VMULPS %s, %s, %s", u, p, p)
			}
			g.op("VMULPS %s, %s, %s", z, z, z)
			g.bits("VPXOR", g.v(sign), z, z)
			g.exp(z, y, n, r, t)
			g.op("VMULPS %s, %s, %s", y, p, p)
			with("VMULPS", "half", p, p)
			g.op("VBROADCASTSS onef<>(SB), %s", t)
			g.op("VSUBPS %s, %s, %s", p, t, n)
			g.op("VBROADCASTSS zero<>(SB), %s", t)
			g.choose("0x1e", x, t, n, p)
			g.op("VMULPS %s, %s, %s", p, x, p)
			g.op("VMOVUPS %s, %d(DI)(DX*1)", p, offset)
		})
	})
	g.end()
}

// widen writes y = x of e4m3 numbers, NaN among them, which are what would be
// 480.
func (g *gen) widen() {
	g.begin("widen", "widenFP8", 24)
	g.op("MOVQ y+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ n+16(FP), CX")
	mask, v, m := g.reg(), g.reg(), g.reg() // loadFP8 wants the mask in the first
	g.op("VBROADCASTSS halves<>(SB), %s", g.v(mask))
	factor, most, nan, magnitude := g.constant("f256"), g.constant("f480"), g.constant("nan"), g.constant("magnitude")
	g.line("widen_loop:")
	g.each(func(u, offset int) {
		g.op("VPMOVSXBW %d(SI), %s", offset/4, g.half(v))
		g.op("VPSLLW $7, %s, %s", g.half(v), g.half(v))
		g.op("VPAND %s, %s, %s", g.half(mask), g.half(v), g.half(v))
		g.op("VCVTPH2PS %s, %s", g.half(v), g.v(v))
		g.op("VMULPS %s, %s, %s", g.v(factor), g.v(v), g.v(v))
		g.bits("VPAND", g.v(magnitude), g.v(v), g.v(m))
		g.choose("0", g.v(m), g.v(most), g.v(nan), g.v(v))
		g.op("VMOVUPS %s, %d(DI)", g.v(v), offset)
	})
	g.op("ADDQ $16, SI")
	g.op("ADDQ $64, DI")
	g.op("SUBQ $16, CX")
	g.op("JG widen_loop")
	g.end()
}
