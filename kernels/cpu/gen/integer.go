package main

// Integer kernels sum a group of 128 columns exactly and then scale it. Beside
// the registers of every matrix kernel they have R14 and R15 as the offsets of
// the group's scale and sum from its row of activations, and BX and R10 at the
// zero points and the scales of the weight; AX and R11 are from tile to tile.

// openInteger begins an integer kernel of at most two tiles.
func (g *gen) openInteger(kind string, s shape, scales, zeros bool) (name string) {
	name = g.open(kind, s)
	g.op("MOVQ 56(AX), R14")
	g.op("SUBQ SI, R14")
	g.op("MOVQ 72(AX), R15")
	g.op("SUBQ SI, R15")
	if scales {
		g.op("MOVQ 80(AX), R10")
		g.op("MOVQ 88(AX), R11")
	}
	if zeros {
		g.op("MOVQ 96(AX), BX")
		g.op("MOVQ 104(AX), AX")
	}
	return name
}

// dot adds to sum the products of unsigned weights w and the four activations
// at offset of row i. Without VNNI, pairs are first added in int16, which four
// bits by eight do not overflow.
func (g *gen) dot(w, i, offset, sum, temp, ones int) {
	if g.wide {
		g.op("VPDPBUSD.BCST %d(%s)(DX*1), %s, %s", offset, rowRegs[i], g.v(w), g.v(sum))
		return
	}
	g.op("VPBROADCASTD %d(%s)(DX*1), %s", offset, rowRegs[i], g.v(temp))
	g.op("VPMADDUBSW %s, %s, %s", g.v(temp), g.v(w), g.v(temp))
	g.op("VPMADDWD %s, %s, %s", g.v(ones), g.v(temp), g.v(temp))
	g.op("VPADDD %s, %s, %s", g.v(temp), g.v(sum), g.v(sum))
}

// int8 writes the kernel of weights that are stored plus 128.
func (g *gen) int8(s shape) {
	name := g.openInteger("Int8", s, false, false)
	units := s.tiles * g.units()
	w, t, a := g.reg(), g.reg(), g.reg()
	flip, ones := -1, -1
	if !g.wide {
		flip, ones = g.constant("flip"), g.constant("ones16")
	}
	total, low, high := g.grid(s), g.grid(s), g.grid(s)
	g.line("%sblock:", name)
	g.clear(low, high)
	const rows = 8
	g.line("%sinner:", name)
	for r := range rows {
		sums := [][][]int{low, high}[r%2]
		for u := range units {
			g.op("VMOVUPS %s, %s", g.at(u, r, 64), g.v(w))
			g.ahead(s, u, 64*r)
			if g.wide {
				for i := range s.rows {
					g.dot(w, i, 4*r, sums[i][u], t, ones)
				}
				continue
			}
			// |w|·(a with the sign of w) stays within int16 in pairs.
			g.op("VPXOR %s, %s, %s", g.v(flip), g.v(w), g.v(w))
			for i := range s.rows {
				g.op("VPBROADCASTD %d(%s)(DX*1), %s", 4*r, rowRegs[i], g.v(a))
				g.op("VPSIGNB %s, %s, %s", g.v(w), g.v(a), g.v(a))
				g.op("VPABSB %s, %s", g.v(w), g.v(t))
				g.op("VPMADDUBSW %s, %s, %s", g.v(a), g.v(t), g.v(t))
				g.op("VPMADDWD %s, %s, %s", g.v(ones), g.v(t), g.v(t))
				g.op("VPADDD %s, %s, %s", g.v(t), g.v(sums[i][u]), g.v(sums[i][u]))
			}
		}
	}
	g.inner(name, s, 64*rows, 4*rows, 128)
	for i := range s.rows {
		if g.wide { // the 128 that every weight has too much
			g.op("VPBROADCASTD (%s)(R15*1), %s", rowRegs[i], g.v(t))
			g.op("VPSLLD $7, %s, %s", g.v(t), g.v(t))
		}
		g.op("VBROADCASTSS (%s)(R14*1), %s", rowRegs[i], g.v(a))
		for u := range units {
			sum := g.v(low[i][u])
			g.op("VPADDD %s, %s, %s", g.v(high[i][u]), sum, sum)
			if g.wide {
				g.op("VPSUBD %s, %s, %s", g.v(t), sum, sum)
			}
			g.scaleSum(sum, g.v(a), g.v(total[i][u]))
		}
	}
	g.next(name, total, 0, false, false)
}

// scaleSum is total += float(sum) · scale, unfused.
func (g *gen) scaleSum(sum, scale, total string) {
	g.op("VCVTDQ2PS %s, %s", sum, sum)
	g.op("VMULPS %s, %s, %s", scale, sum, sum)
	g.op("VADDPS %s, %s, %s", sum, total, total)
}

func (g *gen) clear(grids ...[][]int) {
	for _, m := range grids {
		for _, row := range m {
			g.zero(row...)
		}
	}
}

// next goes on to the next group, or ends the kernel.
// It skips the columns that the high nibbles had.
func (g *gen) next(name string, total [][]int, skip int, scales, zeros bool) {
	if scales {
		g.op("ADDQ $32, R10")
	}
	if zeros {
		g.op("ADDQ $16, BX")
	}
	g.op("ADDQ $4, R14")
	g.op("ADDQ $4, R15")
	if skip > 0 {
		g.op("ADDQ $%d, DX", skip)
	}
	g.op("DECQ CX")
	g.op("JNZ %sblock", name)
	g.store(total)
}

// fourBits is the registers of a kernel of four-bit weights.
type fourBits struct {
	mask, w, t, codes, ones int
	total, low, high        [][]int // results, and the sums of both halves of a group
}

func (g *gen) fourBits(s shape) *fourBits {
	f := &fourBits{mask: g.constant("nibble"), w: g.reg(), t: g.reg(), codes: g.reg(), ones: -1}
	if !g.wide {
		f.ones = g.constant("ones16")
	}
	f.total, f.low, f.high = g.grid(s), g.grid(s), g.grid(s)
	return f
}

// multiply adds the products of rows of dwords to the sums: their low nibbles are
// of the group's first half, their high ones of its second.
func (f *fourBits) multiply(g *gen, s shape, rows int) {
	for r := range rows {
		for u := range s.tiles * g.units() {
			g.op("VMOVUPS %s, %s", g.at(u, r, 64), g.v(f.w))
			g.ahead(s, u, 64*r)
			g.bits("VPAND", g.v(f.mask), g.v(f.w), g.v(f.codes))
			g.op("VPSRLD $4, %s, %s", g.v(f.w), g.v(f.w))
			g.bits("VPAND", g.v(f.mask), g.v(f.w), g.v(f.w))
			for i := range s.rows {
				g.dot(f.codes, i, 4*r, f.low[i][u], f.t, f.ones)
				g.dot(f.w, i, 64+4*r, f.high[i][u], f.t, f.ones)
			}
		}
	}
}

// int4 writes the kernel of four-bit weights, with zero points or with 8.
func (g *gen) int4(s shape, zeros bool) {
	kind := "Int4"
	if zeros {
		kind = "Int4Zero"
	}
	name := g.openInteger(kind, s, true, zeros)
	units := s.tiles * g.units()
	f := g.fourBits(s)
	w, t, total, low, high := f.w, f.t, f.total, f.low, f.high
	g.line("%sblock:", name)
	g.clear(low, high)
	const rows = 4
	g.line("%sinner:", name)
	f.multiply(g, s, rows)
	g.inner(name, s, 64*rows, 4*rows, 64)
	for u := range units {
		tile, part := u/g.units(), u%g.units()
		index := ""
		if tile == 1 {
			index = "(R11*1)"
		}
		for i := range s.rows {
			sum := g.v(low[i][u])
			g.op("VPADDD %s, %s, %s", g.v(high[i][u]), sum, sum)
			g.op("VPBROADCASTD (%s)(R15*1), %s", rowRegs[i], g.v(t))
			if zeros {
				zeroIndex := ""
				if tile == 1 {
					zeroIndex = "(AX*1)"
				}
				g.op("VPMOVZXBD %d(BX)%s, %s", part*g.lanes(), zeroIndex, g.v(w))
				g.op("VPMULLD %s, %s, %s", g.v(w), g.v(t), g.v(t))
			} else {
				g.op("VPSLLD $3, %s, %s", g.v(t), g.v(t))
			}
			g.op("VPSUBD %s, %s, %s", g.v(t), sum, sum)
			g.op("VCVTPH2PS %d(R10)%s, %s", part*g.lanes()*2, index, g.v(t))
			g.op("VBROADCASTSS (%s)(R14*1), %s", rowRegs[i], g.v(w))
			g.op("VMULPS %s, %s, %s", g.v(t), g.v(w), g.v(w))
			g.scaleSum(sum, g.v(w), g.v(total[i][u]))
		}
	}
	g.next(name, total, 64, true, zeros)
}
