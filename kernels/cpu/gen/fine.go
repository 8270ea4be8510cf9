package main

import "fmt"

// int4Fine writes the kernel of four-bit weights with a scale for each 32 columns
// and a zero point, which is 8 for all of Q4. A group of 128 lies as ever, so that
// its rows of dwords are two halves, each with 32 columns in low nibbles and 32 in
// high ones: parts 0 and 2, then 1 and 3, which is the order in which they are
// added. Sums begin with what the zero points take off, so that nothing has to
// be cleared or subtracted.
func (g *gen) int4Fine(s shape, zeros bool) {
	kind := "Q4"
	if zeros {
		kind = "Int4Fine"
	}
	name := g.openInteger(kind, s, true, zeros)
	f := g.fourBits(s)
	g.line("%sblock:", name)
	const rows = 4
	for half, label := range []string{"first", "second"} {
		g.beginPart(s, half, f.low, f.w, zeros)
		g.beginPart(s, 2+half, f.high, f.w, zeros)
		g.line("%s%sinner:", name, label)
		f.multiply(g, s, rows)
		g.inner(name+label, s, 64*rows, 4*rows, 32)
		g.scalePart(s, half, f.low, f)
		g.scalePart(s, 2+half, f.high, f)
	}
	g.op("ADDQ $128, R10")
	if zeros {
		g.op("ADDQ $64, BX")
	}
	g.op("ADDQ $4, R14")
	g.op("ADDQ $16, R15")
	g.op("ADDQ $64, DX")
	g.op("DECQ CX")
	g.op("JNZ %sblock", name)
	g.store(f.total)
}

// unitOf is the tile of a unit, and its first lane there.
func (g *gen) unitOf(u int) (tile, lanes int) { return u / g.units(), u % g.units() * g.lanes() }

// beginPart sets the sums of one part of 32 columns to zero point · -Σ of the
// activations.
func (g *gen) beginPart(s shape, part int, sums [][]int, w int, zeros bool) {
	for u := range s.tiles * g.units() {
		if tile, lanes := g.unitOf(u); zeros {
			g.op("VPMOVZXBD %d(BX)%s, %s", 16*part+lanes, []string{"", "(AX*1)"}[tile], g.v(w))
		}
		for i := range s.rows {
			from, sum := fmt.Sprintf("%d(%s)(R15*1)", 4*part, rowRegs[i]), g.v(sums[i][u])
			switch {
			case zeros && g.wide:
				g.op("VPMULLD.BCST %s, %s, %s", from, g.v(w), sum)
			case g.wide:
				g.op("VPSLLD.BCST $3, %s, %s", from, sum)
			default:
				g.op("VPBROADCASTD %s, %s", from, sum)
				if zeros {
					g.op("VPMULLD %s, %s, %s", g.v(w), sum, sum)
				} else {
					g.op("VPSLLD $3, %s, %s", sum, sum)
				}
			}
		}
	}
}

// scalePart adds the sums of one part of 32 columns to the total.
func (g *gen) scalePart(s shape, part int, sums [][]int, f *fourBits) {
	w, t := g.v(f.w), g.v(f.t)
	for u := range s.tiles * g.units() {
		tile, lanes := g.unitOf(u)
		g.op("VCVTPH2PS %d(R10)%s, %s", 32*part+2*lanes, []string{"", "(R11*1)"}[tile], w)
		for i := range s.rows {
			if g.wide {
				g.op("VMULPS.BCST (%s)(R14*1), %s, %s", rowRegs[i], w, t)
			} else {
				g.op("VBROADCASTSS (%s)(R14*1), %s", rowRegs[i], t)
				g.op("VMULPS %s, %s, %s", w, t, t)
			}
			g.scaleSum(g.v(sums[i][u]), t, g.v(f.total[i][u]))
		}
	}
}
