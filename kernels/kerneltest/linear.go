package kerneltest

import (
	"math"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// formats is every format of a matrix.
var formats = []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatF16, kernels.FormatInt8,
	kernels.FormatInt4, kernels.FormatFP8, kernels.FormatMXFP4, kernels.FormatGPTQ, kernels.FormatAWQ}

// shapes is (rows, out, in) with tails below and above every width of lanes.
var shapes = [][3]int{{1, 1, 1}, {1, 16, 32}, {2, 17, 33}, {3, 31, 63}, {1, 64, 128}, {5, 80, 129},
	{4, 127, 256}, {7, 160, 384}, {1, 513, 256}, {64, 33, 128}, {33, 48, 640}}

// fits reports whether a format can have a shape.
func fits(format kernels.Format, out, in int) bool {
	switch format {
	case kernels.FormatInt4:
		return in%128 == 0
	case kernels.FormatMXFP4:
		return in%32 == 0
	case kernels.FormatGPTQ, kernels.FormatAWQ:
		return in%128 == 0 && out%8 == 0
	}
	return true
}

// testFine has four-bit weights with scales for 32 and 64 columns, whose columns
// need not fill a group of activations, and GGUF's Q4_0; backends may not have
// them.
func testFine(t *testing.T, b kernels.Backend) {
	for i, c := range []struct{ n, out, in, group int }{
		{1, 16, 32, 32}, {1, 8, 64, 64}, {2, 24, 96, 32}, {5, 40, 192, 64}, {4, 128, 256, 32}, {7, 160, 896, 64}, {1, 264, 416, 32}, {33, 48, 640, 32}, {64, 72, 128, 64},
	} {
		for _, format := range []kernels.Format{kernels.FormatGPTQ, kernels.FormatAWQ} {
			compareLinear(t, b, format, uint64(i), c.n, c.out, c.in, func(s *scene, out, in int) kernels.Source { return s.packed(format, out, in, c.group) })
		}
		compareLinear(t, b, kernels.FormatInt4, uint64(i), c.n, c.out, c.in, (*scene).q4)
	}
}

func testLinear(t *testing.T, b kernels.Backend) {
	for _, format := range formats {
		t.Run(format.String(), func(t *testing.T) {
			for i, shape := range shapes {
				if fits(format, shape[1], shape[2]) {
					compareLinear(t, b, format, uint64(i), shape[0], shape[1], shape[2])
				}
			}
		})
	}
}

// testStored has sources that are stored in 16 bits.
func testStored(t *testing.T, b kernels.Backend) {
	for i, shape := range [][3]int{{1, 16, 32}, {2, 17, 34}, {1, 40, 31}, {5, 130, 300}} {
		for _, format := range []kernels.Format{kernels.FormatBF16, kernels.FormatF32, kernels.FormatInt8} {
			compareLinear(t, b, format, uint64(i), shape[0], shape[1], shape[2], (*scene).bf16)
		}
	}
}

// testBlockScales has fp8 checkpoints whose blocks have scales of their own.
func testBlockScales(t *testing.T, b kernels.Backend) {
	for i, shape := range [][3]int{{1, 16, 128}, {1, 200, 384}, {5, 130, 300}, {9, 130, 300}, {33, 256, 256}} {
		compareLinear(t, b, kernels.FormatFP8, uint64(i), shape[0], shape[1], shape[2], (*scene).blockFP8)
	}
}

// compareLinear compares one linear of random weights, or of those that make
// gives.
func compareLinear(t *testing.T, b kernels.Backend, format kernels.Format, seed uint64, n, out, in int, make ...func(*scene, int, int) kernels.Source) {
	t.Helper()
	matrix := func(s *scene) kernels.Weight {
		if len(make) > 0 {
			return s.add(make[0](s, out, in), format)
		}
		return s.matrix(format, out, in)
	}
	build := func(s *scene) {
		x := s.random(n, in)
		y := s.p.New(kernels.Tokens, out)
		s.p.Do(&kernels.Linear{In: x, Out: y, Weights: []kernels.Weight{matrix(s)}, Add: kernels.None})
		s.p.Do(&kernels.Output{In: y})
	}
	got, want, ok := against(t, b, seed, rows(n), build)
	if !ok {
		return
	}
	tol := tolerance{}
	switch format {
	case kernels.FormatF32, kernels.FormatF16:
		tol.ofSum = 5e-6
	case kernels.FormatBF16, kernels.FormatFP8, kernels.FormatMXFP4:
		tol.ofSum, tol.rel = 1e-5, 1.0/256
	}
	if tol.ofSum > 0 {
		a := newScene(t, ref.New(), seed)
		a.abs = true
		build(a)
		tol.sums, _ = run(t, a.compile(limitsOf(rows(n))), rows(n))
	}
	tol.close(t, got, want)
}

// testLinearParts has several matrices side by side, biases, a scale, a
// residual, and inputs that are zero, huge, tiny and infinite.
func testLinearParts(t *testing.T, b kernels.Backend) {
	for _, format := range formats {
		const n, in = 6, 256
		got, want, ok := against(t, b, 5, rows(n), func(s *scene) {
			x := s.normal(n*in, 1)
			clear(x[in : 2*in])
			for k := range in {
				x[2*in+k] *= 1e-20
				x[3*in+k] *= 1e15
			}
			x[4*in+7] = float32(math.Inf(1))
			v := s.input(x, in)
			residual := s.random(n, 24+56+128)
			y := s.p.New(kernels.Tokens, 24+56+128)
			op := &kernels.Linear{In: v, Out: y, Add: residual, Scale: 0.5}
			for i, out := range []int{24, 56, 128} {
				op.Weights = append(op.Weights, s.matrix(format, out, in))
				op.Biases = append(op.Biases, nil)
				if i != 1 {
					op.Biases[i] = s.vector(out, 0)
				}
			}
			s.p.Do(op)
			s.p.Do(&kernels.Output{In: y})
		})
		if !ok {
			continue
		}
		for _, i := range []int{0, 1, 2, 3, 5} {
			scale := 1.0
			if i == 3 {
				scale = 1e15
			}
			tolerance{abs: 1e-4 * scale, rel: 1e-5}.close(t, got[i:i+1], want[i:i+1])
		}
		for k, v := range got[4] {
			if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) && !math.IsNaN(float64(want[4][k])) == !math.IsInf(float64(want[4][k]), 0) {
				t.Fatalf("%v: an infinite input gave %v in column %d", format, v, k)
			}
		}
	}
}
