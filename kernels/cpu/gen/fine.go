package main

// int4Fine writes the kernel of four-bit weights with a scale and a zero point
// for each 32 columns. A group of 128 lies as ever, so that its rows of dwords
// are two halves, each with 32 columns in low nibbles and 32 in high ones: parts
// 0 and 2, then 1 and 3, which is the order in which they are added.
func (g *gen) int4Fine(s shape) {
	name := g.openInteger("Int4Fine", s, true, true)
	f := g.fourBits(s)
	g.line("%sblock:", name)
	const rows = 4
	for half, label := range []string{"first", "second"} {
		g.clear(f.low, f.high)
		g.line("%s%sinner:", name, label)
		f.multiply(g, s, rows)
		g.inner(name+label, s, 64*rows, 4*rows, 32)
		g.scalePart(s, half, f.low, f.total, f.w, f.t)
		g.scalePart(s, 2+half, f.high, f.total, f.w, f.t)
	}
	g.op("ADDQ $128, R10")
	g.op("ADDQ $64, BX")
	g.op("ADDQ $4, R14")
	g.op("ADDQ $16, R15")
	g.op("ADDQ $64, DX")
	g.op("DECQ CX")
	g.op("JNZ %sblock", name)
	g.store(f.total)
}

// scalePart adds the sums of one part of 32 columns to the total.
func (g *gen) scalePart(s shape, part int, sums, total [][]int, w, t int) {
	for u := range s.tiles * g.units() {
		tile, lanes := u/g.units(), u%g.units()*g.lanes()
		scales, zeros := "", ""
		if tile == 1 {
			scales, zeros = "(R11*1)", "(AX*1)"
		}
		for i := range s.rows {
			sum := g.v(sums[i][u])
			g.op("VPBROADCASTD %d(%s)(R15*1), %s", 4*part, rowRegs[i], g.v(t))
			g.op("VPMOVZXBD %d(BX)%s, %s", 16*part+lanes, zeros, g.v(w))
			g.op("VPMULLD %s, %s, %s", g.v(w), g.v(t), g.v(t))
			g.op("VPSUBD %s, %s, %s", g.v(t), sum, sum)
			g.op("VCVTPH2PS %d(R10)%s, %s", 32*part+2*lanes, scales, g.v(t))
			g.op("VBROADCASTSS (%s)(R14*1), %s", rowRegs[i], g.v(w))
			g.op("VMULPS %s, %s, %s", g.v(t), g.v(w), g.v(w))
			g.scaleSum(sum, g.v(w), g.v(total[i][u]))
		}
	}
}
