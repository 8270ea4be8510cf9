package main

// mxfp4 writes the kernel of four-bit floats: rows of eight columns, whose
// nibbles pick from a table, and a power of two for every block of 32.
func (g *gen) mxfp4(s shape) {
	name := g.open("MXFP4", s)
	g.op("MOVQ 80(AX), BX")
	g.op("MOVQ 88(AX), AX")
	units := s.tiles * g.units()
	table, raw, w := g.reg(), g.reg(), g.reg()
	b, sign := g.reg(), -1
	g.op("VMOVUPS e2m1<>(SB), %s", g.v(table))
	if !g.wide {
		sign = g.constant("sign")
	}
	total := g.grid(s)
	var sums [2][][]int
	sums[0], sums[1] = g.grid(s), g.grid(s)
	g.line("%sblock:", name)
	g.clear(sums[0], sums[1])
	g.line("%sinner:", name)
	for u := range units {
		g.op("VMOVUPS %s, %s", g.at(u, 0, 64), g.v(raw))
		g.ahead(s, u, 0)
		for k := range 8 {
			// A permutation looks at the low bits of a lane alone.
			g.op("VPERMPS %s, %s, %s", g.v(table), g.v(raw), g.v(w))
			if !g.wide { // the table has eight entries; the fourth bit is the sign
				g.op("VPSLLD $28, %s, %s", g.v(raw), g.v(b))
				g.op("VPAND %s, %s, %s", g.v(sign), g.v(b), g.v(b))
				g.op("VPOR %s, %s, %s", g.v(b), g.v(w), g.v(w))
			}
			if k < 7 {
				g.op("VPSRLD $4, %s, %s", g.v(raw), g.v(raw))
			}
			for i := range s.rows {
				g.op("VBROADCASTSS %d(%s)(DX*1), %s", 4*k, rowRegs[i], g.v(b))
				g.op("VFMADD231PS %s, %s, %s", g.v(w), g.v(b), g.v(sums[k%2][i][u]))
			}
		}
	}
	g.inner(name, s, 64, 32, 128)
	for u := range units {
		tile, part := u/g.units(), u%g.units()
		switch tile {
		case 0:
			g.op("VPMOVZXBD %d(BX), %s", part*g.lanes(), g.v(w))
		case 1:
			g.op("VPMOVZXBD %d(BX)(AX*1), %s", part*g.lanes(), g.v(w))
		}
		g.op("VPSLLD $23, %s, %s", g.v(w), g.v(w))
		for i := range s.rows {
			even := g.v(sums[0][i][u])
			g.op("VADDPS %s, %s, %s", g.v(sums[1][i][u]), even, even)
			g.op("VMULPS %s, %s, %s", g.v(w), even, even)
			g.op("VADDPS %s, %s, %s", even, g.v(total[i][u]), g.v(total[i][u]))
		}
	}
	g.op("ADDQ $16, BX")
	g.op("DECQ CX")
	g.op("JNZ %sblock", name)
	g.store(total)
}
