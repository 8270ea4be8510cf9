package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"roundhouse/kernels/num"
)

// portable is the instruction set in plain Go. It is what the assembly must equal.
func portable() *isa {
	one := func(run func(*tile)) []multiply { return []multiply{{1, 1, run, nil}} }
	l := &isa{
		name:       "go",
		small:      2e5,
		sumSquares: sumSquares,
		normalise:  normalise,
		sum:        sum,
		deviations: deviations,
		centre:     centre,
		add:        add,
		operands:   operands,
		quantise:   num.QuantiseRow,
		codes:      num.Int8Row,
		lanesOf:    lanesOf,
		pairsBF16:  pairsOfBF16,
		greatest:   greatest,
		exponents:  exponents,
		siluMul:    siluMul,
		gelu:       gelus,
		geluMul:    geluMul,
		widenFP8:   widenFP8,
		widenInt8:  widenInt8,
		widenBF16:  widenBF16,
		slide:      slide,
	}
	l.fused = [fusedKinds][]fusedShape{fusedF32: {{1, 1, fuseF32}}, fusedBF16: {{1, 1, fuseBF16}}}
	l.matrix[kindF32] = one(multiplyF32)
	l.matrix[kindBF16] = one(multiplyBF16)
	l.matrix[kindF16] = one(multiplyF16)
	l.matrix[kindFP8] = one(multiplyFP8)
	l.matrix[kindMXFP4] = one(multiplyMXFP4)
	l.matrix[kindInt8] = one(multiplyInt8)
	l.matrix[kindInt4] = one(multiplyInt4)
	l.matrix[kindInt4Zero] = one(multiplyInt4Zero)
	l.matrix[kindInt4Fine] = one(multiplyInt4Fine)
	l.matrix[kindQ4] = one(multiplyQ4)
	return l
}

// lanes is one row of 16.
type lanes = [16]float32

// tree adds 16 lanes: those 8 apart, then 4, 2 and 1.
func tree(x *lanes) float32 {
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			x[i] += x[i+n]
		}
	}
	return x[0]
}

func multiplyF32(t *tile) {
	var total lanes
	w := unsafe.Slice((*lanes)(t.w), 32*t.blocks)
	a := unsafe.Slice((*[32]float32)(t.a), t.blocks)
	for b := range a {
		var even, odd lanes
		for k := 0; k < 32; k += 2 {
			x, y := a[b][k], a[b][k+1]
			w0, w1 := &w[32*b+k], &w[32*b+k+1]
			for j := range total {
				even[j] += float32(w0[j] * x)
				odd[j] += float32(w1[j] * y)
			}
		}
		for j := range total {
			total[j] += even[j] + odd[j]
		}
	}
	*(*lanes)(t.out) = total
}

func multiplyBF16(t *tile) {
	var total lanes
	w := unsafe.Slice((*[16]uint32)(t.w), 16*t.blocks)
	a := unsafe.Slice((*[32]float32)(t.a), t.blocks)
	for b := range a {
		var even, odd lanes
		for k := 0; k < 32; k += 2 {
			x, y := a[b][k], a[b][k+1]
			row := &w[16*b+k/2]
			for j := range total {
				even[j] += float32(math.Float32frombits(row[j]<<16) * x)
				odd[j] += float32(math.Float32frombits(row[j]&0xffff0000) * y)
			}
		}
		for j := range total {
			total[j] += even[j] + odd[j]
		}
	}
	*(*lanes)(t.out) = total
}

func multiplyF16(t *tile) {
	var total lanes
	w := unsafe.Slice((*[16]uint16)(t.w), 32*t.blocks)
	a := unsafe.Slice((*[32]float32)(t.a), t.blocks)
	for b := range a {
		var sums [2]lanes // of even and of odd columns
		for k, x := range &a[b] {
			row, sum := &w[32*b+k], &sums[k&1]
			for j := range total {
				sum[j] += float32(num.FromF16(row[j]) * x)
			}
		}
		for j := range total {
			total[j] += sums[0][j] + sums[1][j]
		}
	}
	*(*lanes)(t.out) = total
}

// multiplyFP8 sums over e4m3 values divided by 256, which is what their bits
// are as halves; the weight's scales make up for it.
func multiplyFP8(t *tile) {
	var total lanes
	w := unsafe.Slice((*[16]uint8)(t.w), 32*t.blocks)
	a := unsafe.Slice((*[32]float32)(t.a), t.blocks)
	for b := range a {
		var sums [2]lanes
		for k, x := range &a[b] {
			row, sum := &w[32*b+k], &sums[k&1]
			for j := range total {
				sum[j] += float32(num.FromE4M3(row[j]) / 256 * x)
			}
		}
		for j := range total {
			total[j] += sums[0][j] + sums[1][j]
		}
	}
	*(*lanes)(t.out) = total
}

// multiplyMXFP4 sums over e2m1 values and scales each block of 32 columns by its
// power of two, which is exact.
func multiplyMXFP4(t *tile) {
	var total lanes
	w := unsafe.Slice((*[4][16]uint32)(t.w), t.blocks)
	a := unsafe.Slice((*[32]float32)(t.a), t.blocks)
	scales := unsafe.Slice((*[16]uint8)(t.scales), t.blocks)
	for b := range a {
		var sums [2]lanes
		for k, x := range &a[b] {
			row, sum := &w[b][k/8], &sums[k&1]
			for j := range total {
				sum[j] += float32(num.FromE2M1(uint8(row[j]>>(k%8*4))) * x)
			}
		}
		for j := range total {
			scale := math.Float32frombits(uint32(scales[b][j]) << 23)
			total[j] += float32((sums[0][j] + sums[1][j]) * scale)
		}
	}
	*(*lanes)(t.out) = total
}

func multiplyInt8(t *tile) {
	var total lanes
	w := unsafe.Slice((*[16][4]uint8)(t.w), 32*t.blocks)
	a := unsafe.Slice((*[32][4]int8)(t.a), t.blocks)
	scales := unsafe.Slice((*float32)(t.aux), t.blocks)
	for b := range a {
		var sum [16]int32
		for r := range 32 {
			x, row := &a[b][r], &w[32*b+r]
			for j := range sum {
				c := &row[j]
				sum[j] += int32(int8(c[0]^0x80))*int32(x[0]) + int32(int8(c[1]^0x80))*int32(x[1]) +
					int32(int8(c[2]^0x80))*int32(x[2]) + int32(int8(c[3]^0x80))*int32(x[3])
			}
		}
		for j, s := range &sum {
			total[j] += float32(float32(s) * scales[b])
		}
	}
	*(*lanes)(t.out) = total
}

func multiplyInt4(t *tile) {
	eights := [16]uint8{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}
	var total lanes
	for b := range t.blocks {
		groupInt4(t, b, &eights, &total)
	}
	*(*lanes)(t.out) = total
}

func multiplyInt4Zero(t *tile) {
	var total lanes
	zeros := unsafe.Slice((*[16]uint8)(t.zeros), t.blocks)
	for b := range t.blocks {
		groupInt4(t, b, &zeros[b], &total)
	}
	*(*lanes)(t.out) = total
}

// groupInt4 adds one group of 128 columns to the total.
func groupInt4(t *tile, b uintptr, zeros *[16]uint8, total *lanes) {
	w := (*[16][16][4]uint8)(unsafe.Add(t.w, b*1024))
	a := (*[2][16][4]int8)(unsafe.Add(t.a, b*128))
	scale := *(*float32)(unsafe.Add(t.aux, b*4))
	ones := *(*int32)(unsafe.Add(t.sums, b*4))
	halves := (*[16]uint16)(unsafe.Add(t.scales, b*32))
	var sum [16]int32
	for r := range 16 {
		low, high := &a[0][r], &a[1][r]
		for j := range sum {
			for i, c := range &w[r][j] {
				sum[j] += int32(c&15)*int32(low[i]) + int32(c>>4)*int32(high[i])
			}
		}
	}
	for j := range sum {
		exact := float32(sum[j] - int32(zeros[j])*ones)
		total[j] += float32(exact * float32(scale*num.FromF16(halves[j])))
	}
}

func sumSquares(x []float32) float32 {
	var sum lanes
	for len(x) >= 16 {
		for j, v := range (*lanes)(x) {
			sum[j] += float32(v * v)
		}
		x = x[16:]
	}
	for j, v := range x {
		sum[j] += float32(v * v)
	}
	return tree(&sum)
}

func normalise(y, x, w []float32, scale float32) {
	for i := range y {
		y[i] = float32(x[i]*scale) * w[i]
	}
}

func add(y, x []float32) {
	for i, v := range x {
		y[i] += v
	}
}

func operands(y, x []float32) {
	for i, v := range x {
		y[i] = num.Operand(v)
	}
}

func greatest(x []float32) float32 {
	most := x[0]
	for _, v := range x {
		if v > most {
			most = v
		}
	}
	return most
}

func exponents(y, x []float32, scale, most float32) float32 {
	var sum lanes
	for i, v := range x {
		e := exp(float32(v*scale) - most)
		y[i] = e
		sum[i&15] += e
	}
	return tree(&sum)
}

func siluMul(y, gate, up []float32) {
	for i := range y {
		y[i] = silu(gate[i]) * up[i]
	}
}

func gelus(y, x []float32) {
	for i, v := range x {
		y[i] = gelu(v)
	}
}

func geluMul(y, gate, up []float32) {
	for i := range y {
		y[i] = geluTanh(gate[i]) * up[i]
	}
}

func widenFP8(y []float32, x []byte) {
	for i := range y {
		y[i] = num.FromE4M3(x[i])
	}
}

func widenInt8(y []float32, x []byte) {
	for i := range y {
		y[i] = float32(int8(x[i]))
	}
}

func widenBF16(y []float32, x []byte) {
	for i := range y {
		y[i] = num.FromBF16(binary.LittleEndian.Uint16(x[2*i:]))
	}
}
