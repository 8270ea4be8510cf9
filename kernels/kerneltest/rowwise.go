package kerneltest

import (
	"math"
	"testing"

	"roundhouse/kernels"
)

// usual is the tolerance of what is not a linear.
var usual = tolerance{abs: 2e-6, rel: 1e-5}

func testNorm(t *testing.T, b kernels.Backend) {
	f := func(n, columns int, op kernels.Norm, weight, bias, add bool) {
		t.Helper()
		got, want, _ := against(t, b, uint64(columns), rows(n), func(s *scene) {
			op := op
			op.In, op.Add = s.random(n, columns), kernels.None
			if add {
				op.Add = s.random(n, columns)
			}
			width := op.Width
			if width == 0 {
				width = columns
			}
			if weight {
				op.Weight = s.vector(width, 1)
			}
			if bias {
				op.Bias = s.vector(width, 0)
			}
			op.Out = s.p.New(kernels.Tokens, columns)
			s.p.Do(&op)
			s.p.Do(&kernels.Output{In: op.Out})
			if add {
				s.p.Do(&kernels.Output{In: op.Add})
			}
		})
		usual.close(t, got, want)
	}
	for _, columns := range []int{1, 3, 15, 16, 17, 64, 100, 256, 1000} {
		f(3, columns, kernels.Norm{Eps: 1e-6}, true, false, false)
		f(2, columns, kernels.Norm{Eps: 1e-6, Offset: 1}, true, false, true)
		f(2, columns, kernels.Norm{Eps: 1e-5, Layer: true}, true, true, true)
	}
	f(70, 256, kernels.Norm{Eps: 1e-6}, true, false, true)
	f(2, 128, kernels.Norm{Eps: 1e-6, Width: 32}, true, false, false)
	f(2, 200, kernels.Norm{Eps: 1e-6, Width: 32, First: 8, Count: 4}, true, false, false)
	f(2, 48, kernels.Norm{Eps: 1e-6, Width: 16}, false, false, false)
	for _, columns := range []int{5, 33, 64, 1000} {
		f(3, columns, kernels.Norm{Eps: 1e-5, Layer: true}, true, false, false)
		f(3, columns, kernels.Norm{Eps: 1e-5, Layer: true}, false, true, false)
	}
	f(70, 256, kernels.Norm{Eps: 1e-5, Layer: true}, true, true, true)
	f(2, 200, kernels.Norm{Eps: 1e-5, Width: 32, First: 8, Count: 4, Layer: true}, true, true, false)
	testFarNorm(t, b)
}

// testFarNorm holds LayerNorm to its tolerance where the numbers are far from
// zero beside what they differ by, where all are the same, and in place.
func testFarNorm(t *testing.T, b kernels.Backend) {
	for _, columns := range []int{17, 256, 1000} {
		for _, spread := range []float64{1, 1e-2, 0} {
			got, want, _ := against(t, b, uint64(columns), rows(3), func(s *scene) {
				x := s.normal(3*columns, spread)
				for i := range x {
					x[i] += 1000
				}
				in := s.input(x, columns)
				s.p.Do(&kernels.Norm{In: in, Out: in, Add: kernels.None, Weight: s.vector(columns, 1), Bias: s.vector(columns, 0), Eps: 1e-5, Layer: true})
				s.p.Do(&kernels.Output{In: in})
			})
			usual.close(t, got, want)
		}
	}
}

// equalNorms has two backends give the same bits for norms of both kinds.
func equalNorms(t *testing.T, a, b kernels.Backend) {
	const n = 9
	for _, columns := range []int{1, 5, 33, 768, 1000} {
		for _, layer := range []bool{false, true} {
			var results [2][][]float32
			for i, backend := range []kernels.Backend{a, b} {
				s := newScene(t, backend, uint64(columns))
				op := &kernels.Norm{In: s.random(n, columns), Add: s.random(n, columns), Weight: s.vector(columns, 1), Eps: 1e-5, Layer: layer}
				if layer {
					op.Bias = s.vector(columns, 0)
				}
				op.Out = s.p.New(kernels.Tokens, columns)
				s.p.Do(op)
				s.p.Do(&kernels.Output{In: op.Out})
				results[i], _ = run(t, s.compile(limitsOf(rows(n))), rows(n))
			}
			same(t, name("norm of %d columns: %s and %s", columns, a.Name(), b.Name()), results[0], results[1])
		}
	}
}

func testActivate(t *testing.T, b kernels.Backend) {
	kinds := []kernels.Activation{kernels.SiLU, kernels.GELU, kernels.GELUTanh, kernels.ReLU, kernels.Tanh, kernels.Sigmoid, kernels.QuickGELU, kernels.SwiGLUOAI}
	for _, kind := range kinds {
		for _, width := range []int{1, 15, 16, 17, 100, 256} {
			for _, up := range []bool{false, true} {
				if kind == kernels.SwiGLUOAI && !up {
					continue
				}
				got, want, _ := against(t, b, 3, rows(5), func(s *scene) {
					columns := width
					if up {
						columns = 2 * width
					}
					x := s.normal(5*columns, 3)
					copy(x, []float32{0, float32(math.Copysign(0, -1)), 100, -100, 1e30, -1e30, 1e-30})
					if !up {
						x[columns-1] = float32(math.Inf(1))
					}
					op := &kernels.Activate{In: s.input(x, columns), Out: s.p.New(kernels.Tokens, width), Kind: kind, Up: up}
					if kind == kernels.SwiGLUOAI {
						op.Limit = 7
					}
					s.p.Do(op)
					s.p.Do(&kernels.Output{In: op.Out})
				})
				usual.close(t, got, want)
			}
		}
	}
}

func testScale(t *testing.T, b kernels.Backend) {
	f := func(gate int, add bool, factor float32) {
		t.Helper()
		got, want, _ := against(t, b, 4, rows(9), func(s *scene) {
			op := &kernels.Scale{In: s.random(9, 33), Gate: kernels.None, Add: kernels.None, Out: s.p.New(kernels.Tokens, 33), Kind: kernels.Sigmoid, Factor: factor}
			if gate > 0 {
				op.Gate = s.random(9, gate)
			}
			if add {
				op.Add = s.random(9, 33)
			}
			s.p.Do(op)
			s.p.Do(&kernels.Output{In: op.Out})
		})
		usual.close(t, got, want)
	}
	f(0, false, 0.25)
	f(1, true, 0)
	f(33, true, 2)
	f(33, false, 0)
}

// testEmbed reads tables of every format by each kind of id, and copies columns.
func testEmbed(t *testing.T, b kernels.Backend) {
	step := &kernels.Step{Tokens: []int32{3, 0, 19, 3, 7}, Positions: []int32{4, 5, 6, 0, 1}, Types: []int32{1, 1, 0, 0, 1},
		Seqs: []kernels.Seq{{First: 0, Count: 3, Context: 7}, {First: 3, Count: 2, Context: 2}}, Rows: []int32{2, 4}}
	tables := map[string]func(*scene) kernels.Weight{"q4_0": func(s *scene) kernels.Weight { return s.add(s.q4(24, 256), kernels.FormatInt4) }}
	for _, format := range formats {
		tables[format.String()] = func(s *scene) kernels.Weight { return s.matrix(format, 24, 256) }
	}
	for _, table := range tables {
		for _, ids := range []kernels.IDs{kernels.TokenIDs, kernels.PositionIDs, kernels.TypeIDs} {
			got, want, ok := against(t, b, 6, step, func(s *scene) {
				x, part := s.p.New(kernels.Tokens, 256), s.p.New(kernels.Tokens, 50)
				picked := s.p.New(kernels.Sampled, 50)
				s.p.Do(&kernels.Embed{Out: x, Table: table(s), IDs: ids, Scale: 3})
				s.p.Do(&kernels.Columns{In: x, Out: part, First: 11})
				s.p.Do(&kernels.Pick{In: part, Out: picked})
				s.p.Do(&kernels.Output{In: x})
				s.p.Do(&kernels.Output{In: picked})
			})
			if ok {
				tolerance{rel: 3e-7}.close(t, got, want)
			}
		}
	}
}

func testRoPE(t *testing.T, b kernels.Backend) {
	step := rows(6)
	copy(step.Positions, []int32{0, 1, 17, 1000, 8191, 131071})
	f := func(op kernels.RoPE) {
		t.Helper()
		rotary := op.Rotary
		if rotary == 0 {
			rotary = op.HeadDim
		}
		for i := range rotary / 2 {
			op.InvFreq = append(op.InvFreq, math.Pow(10000, -2*float64(i)/float64(rotary)))
		}
		got, want, _ := against(t, b, 8, step, func(s *scene) {
			op := op
			op.X = s.random(6, op.First+op.Heads*op.HeadDim+5)
			s.p.Do(&op)
			s.p.Do(&kernels.Output{In: op.X})
		})
		usual.close(t, got, want)
	}
	f(kernels.RoPE{Heads: 4, HeadDim: 64})
	f(kernels.RoPE{Heads: 3, HeadDim: 32, First: 7, Scale: 1.3})
	f(kernels.RoPE{Heads: 2, HeadDim: 48, Rotary: 12, Start: 20})
	f(kernels.RoPE{Heads: 2, HeadDim: 6, Interleaved: true})
}

func testPool(t *testing.T, b kernels.Backend) {
	step := rows(9)
	step.Seqs = []kernels.Seq{{First: 0, Count: 4, Context: 4}, {First: 4, Count: 1, Context: 1}, {First: 5, Count: 4, Context: 4}}
	for _, kind := range []kernels.Pooling{kernels.PoolCLS, kernels.PoolMean, kernels.PoolLast} {
		for _, normalise := range []bool{false, true} {
			got, want, _ := against(t, b, 9, step, func(s *scene) {
				out := s.p.New(kernels.Seqs, 37)
				s.p.Do(&kernels.Pool{In: s.random(9, 37), Out: out, Kind: kind, Normalise: normalise})
				s.p.Do(&kernels.Output{In: out})
			})
			usual.close(t, got, want)
		}
	}
}
