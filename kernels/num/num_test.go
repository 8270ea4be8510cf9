package num

import (
	"encoding/binary"
	"math"
	"testing"

	"roundhouse/kernels"
)

// Every number of a format reads back as itself, and what lies between two
// goes to the nearer, ties to the even code.
func TestRounding(t *testing.T) {
	f := func(name string, codes int, widen func(int) float32, round func(float32) int) {
		t.Helper()
		for c := range codes {
			v := widen(c)
			if v != v || math.IsInf(float64(v), 0) {
				continue
			}
			if got := round(v); got != c {
				t.Fatalf("%s: code %#x is %v, which rounds to %#x", name, c, v, got)
			}
			next := widen(c + 1)
			if c&(codes/2-1) == codes/2-1 || next != next || math.IsInf(float64(next), 0) {
				continue
			}
			middle := (float64(v) + float64(next)) / 2
			want := c + c&1
			if got := round(float32(middle)); float64(float32(middle)) == middle && got != want {
				t.Fatalf("%s: %v lies between %#x and %#x and rounds to %#x; want %#x", name, middle, c, c+1, got, want)
			}
			if got := round(math.Nextafter32(float32(middle), v)); got != c {
				t.Fatalf("%s: just before the middle of %#x and %#x rounds to %#x", name, c, c+1, got)
			}
		}
	}
	f("bf16", 1<<16, func(c int) float32 { return FromBF16(uint16(c)) }, func(x float32) int { return int(BF16(x)) })
	f("fp16", 1<<16, func(c int) float32 { return FromF16(uint16(c)) }, func(x float32) int { return int(F16(x)) })
	f("e4m3", 1<<8, func(c int) float32 { return FromE4M3(uint8(c)) }, func(x float32) int { return int(E4M3(x)) })
}

func TestBounds(t *testing.T) {
	inf := float32(math.Inf(1))
	f := func(name string, got, want float32) {
		t.Helper()
		if got != want && (got == got || want == want) {
			t.Fatalf("%s: got %v; want %v", name, got, want)
		}
	}
	f("bf16 of infinity", RoundBF16(inf), inf)
	f("bf16 of NaN", RoundBF16(float32(math.NaN())), float32(math.NaN()))
	f("bf16 of the greatest float32", RoundBF16(math.MaxFloat32), inf)
	f("fp16 of 65519", FromF16(F16(65519)), 65504)
	f("fp16 of 65520", FromF16(F16(65520)), inf)
	f("e4m3 of infinity", FromE4M3(E4M3(inf)), 448)
	f("e4m3 of -1000", FromE4M3(E4M3(-1000)), -448)
	f("e5m2 0x7b", FromE5M2(0x7b), 57344)
	f("operand below Tiny", Operand(Tiny*0.9), 0)
	f("operand Tiny", Operand(-Tiny), -Tiny)
	f("e8m0 127", FromE8M0(127), 1)
}

// sym_int4 by hand: the element of the greatest magnitude is code 0, and
// codes are chosen with the unrounded scale.
func TestSymInt4(t *testing.T) {
	f := func(x []float32, scale float32, codes []uint8) {
		t.Helper()
		q := make([]uint8, len(x))
		if got := FromF16(SymInt4(q, x)); got != scale {
			t.Fatalf("%v: scale %v; want %v", x, got, scale)
		}
		for i := range codes {
			if q[i] != codes[i] {
				t.Fatalf("%v: codes %v; want %v", x, q, codes)
			}
		}
	}
	f([]float32{0, 0}, 0, []uint8{8, 8})
	f([]float32{-8, 7, 1, 0.4, 0.5, -0.5, -0.6}, 1, []uint8{0, 15, 9, 8, 9, 8, 7})
	f([]float32{8, -8, 7, -7}, -1, []uint8{0, 15, 1, 15}) // the first of equals
}

func TestQuantiseRow(t *testing.T) {
	q := make([]int8, 5)
	scale, sum := QuantiseRow(q, []float32{127, -127, 0.5, 1.5, -2.5})
	if scale != 1 || sum != 0 || q[0] != 127 || q[1] != -127 || q[2] != 0 || q[3] != 2 || q[4] != -2 {
		t.Fatalf("got %v, scale %v, sum %d", q, scale, sum)
	}
	if scale, _ := QuantiseRow(q, []float32{1, float32(math.NaN()), 2, 3, 4}); scale == scale {
		t.Fatalf("NaN was lost: scale %v", scale)
	}
	if scale, _ := QuantiseRow(q, []float32{1, float32(math.Inf(-1)), 2, 3, 4}); scale == scale {
		t.Fatalf("infinity was lost: scale %v", scale)
	}
}

// GPTQ and AWQ words are read as their authors pack them: GPTQ eight rows of
// a column from the low nibble on and zero points less one, AWQ eight columns
// in the order 0 2 4 6 1 3 5 7.
func TestPacked(t *testing.T) {
	const in, out = 128, 8
	code := func(o, k int) uint8 { return uint8(o+3*k) & 15 }
	scales := make([]byte, 0, 2*out)
	for o := range out {
		scales = binary.LittleEndian.AppendUint16(scales, F16(float32(o+1)))
	}
	src := kernels.Source{Name: "w", Out: out, In: in, Type: kernels.Int32, Group: 128, ScalesType: kernels.F16, Scales: scales,
		Data: make([]byte, in*out/2), Zeros: make([]byte, out/2)}
	check := func(format kernels.Format, zero func(o int) uint8) {
		t.Helper()
		if err := Check(src, format); err != nil {
			t.Fatal(err)
		}
		w, err := Quantise(src, format)
		if err != nil {
			t.Fatal(err)
		}
		for o := range out {
			if w.Zeros[o] != zero(o) || w.Scales[o] != float32(o+1) {
				t.Fatalf("%v: row %d has zero point %d and scale %v", format, o, w.Zeros[o], w.Scales[o])
			}
			for k := range in {
				column := k
				if w.Order != nil {
					column = int(w.Order[k])
				}
				if got := w.Codes[o*in+k]; got != code(o, column) {
					t.Fatalf("%v: element (%d, %d) is %d; want %d", format, o, column, got, code(o, column))
				}
			}
		}
	}
	put := func(b []byte, word, lane int, c uint8) {
		b[4*word+lane/2] |= c << (lane % 2 * 4)
	}
	for o := range out {
		put(src.Zeros, 0, o, uint8(o))
		for k := range in {
			put(src.Data, k/8*out+o, k%8, code(o, k))
		}
	}
	check(kernels.FormatGPTQ, func(o int) uint8 { return uint8(o) + 1 })

	clear(src.Data)
	clear(src.Zeros)
	for lane, o := range []int{0, 2, 4, 6, 1, 3, 5, 7} {
		put(src.Zeros, 0, lane, uint8(o))
		for k := range in {
			put(src.Data, k, lane, code(o, k))
		}
	}
	check(kernels.FormatAWQ, func(o int) uint8 { return uint8(o) })
}

// A column order must give every group its columns.
func TestOrder(t *testing.T) {
	src := kernels.Source{Name: "w", Out: 8, In: 256, Type: kernels.Int32, Group: 128, ScalesType: kernels.F16,
		Scales: make([]byte, 32), Data: make([]byte, 1024), Zeros: make([]byte, 8), Order: make([]byte, 1024)}
	if _, err := Quantise(src, kernels.FormatGPTQ); err == nil {
		t.Fatal("256 columns of group 0 were accepted")
	}
	for k := range 256 {
		src.Order[4*k] = byte(k % 2)
	}
	w, err := Quantise(src, kernels.FormatGPTQ)
	if err != nil {
		t.Fatal(err)
	}
	if w.Order[1] != 2 || w.Order[128] != 1 {
		t.Fatalf("order %v", w.Order)
	}
}
