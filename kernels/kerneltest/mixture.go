package kerneltest

import (
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

func testMoE(t *testing.T, b kernels.Backend) {
	const n, hidden, inner, experts = 13, 128, 128, 8
	f := func(op kernels.MoE, router, format kernels.Format, bias, add bool) {
		t.Helper()
		got, want, ok := against(t, b, 20, rows(n), func(s *scene) {
			op := op
			op.In, op.Add = s.random(n, hidden), kernels.None
			op.Router = s.matrix(router, experts, hidden)
			for range experts {
				op.GateUp = append(op.GateUp, s.matrix(format, 2*inner, hidden))
				op.Down = append(op.Down, s.matrix(format, hidden, inner))
			}
			if bias {
				op.Bias = s.vector(experts, 0)
				op.RouterAdd = s.vector(experts, 0)
				for range experts {
					op.GateUpAdd = append(op.GateUpAdd, s.vector(2*inner, 0))
					op.DownAdd = append(op.DownAdd, s.vector(hidden, 0))
				}
			}
			if add {
				op.Add = s.random(n, hidden)
			}
			op.Out = s.p.New(kernels.Tokens, hidden)
			s.p.Do(&op)
			s.p.Do(&kernels.Output{In: op.Out})
		})
		if ok {
			tol := tolerance{abs: 2e-5, rel: 1e-4}
			if format != kernels.FormatF32 || router != kernels.FormatF32 {
				// An intermediate value that lies near the middle of two
				// operands may round to either.
				tol.abs = 1e-2
			}
			tol.close(t, got, want)
		}
	}
	f(kernels.MoE{Top: 2, TopFirst: true}, kernels.FormatF32, kernels.FormatF32, false, false)
	f(kernels.MoE{Top: 3, Normalise: true, Scale: 2.5}, kernels.FormatF32, kernels.FormatF32, false, true)
	f(kernels.MoE{Top: 1}, kernels.FormatF32, kernels.FormatBF16, false, true)
	f(kernels.MoE{Top: 4, Sigmoid: true, Normalise: true, Groups: 4, TopGroups: 2}, kernels.FormatF32, kernels.FormatF32, true, true)
	f(kernels.MoE{Top: 2, Groups: 2, TopGroups: 1}, kernels.FormatF32, kernels.FormatF32, false, true)
	f(kernels.MoE{Top: 4, TopFirst: true, Kind: kernels.SwiGLUOAI, Limit: 7}, kernels.FormatF32, kernels.FormatMXFP4, true, false)
	f(kernels.MoE{Top: 2, TopFirst: true}, kernels.FormatF32, kernels.FormatInt4, false, false)
	for _, router := range []kernels.Format{kernels.FormatBF16, kernels.FormatInt8, kernels.FormatFP8} {
		f(kernels.MoE{Top: 2, TopFirst: true}, router, kernels.FormatF32, true, false)
	}
}

// testDelta runs two sequences in one step, then goes on with both.
func testDelta(t *testing.T, b kernels.Backend) {
	deltaOf(t, b, 24, 20, 4)
	deltaOf(t, b, 32, 48, 4)
	deltaOf(t, b, 16, 32, 1)
}

func deltaOf(t *testing.T, b kernels.Backend, keyDim, valueDim, taps int) {
	t.Helper()
	got, want := runDelta(t, b, keyDim, valueDim, taps, false), runDelta(t, ref.New(), keyDim, valueDim, taps, false)
	tolerance{abs: 1e-5, rel: 1e-4}.close(t, got, want)
	same(t, "the delta rule in other steps", runDelta(t, b, keyDim, valueDim, taps, true), got)
}

// runDelta is what becomes of three sequences; apart, each row is a step of its own.
func runDelta(t *testing.T, b kernels.Backend, keyDim, valueDim, taps int, apart bool) (results [][]float32) {
	t.Helper()
	const n, keyHeads, valueHeads = 12, 2, 4
	channels := 2*keyHeads*keyDim + valueHeads*valueDim
	table := func(i int32) [][]int32 { return [][]int32{{i}} }
	steps := []*kernels.Step{rows(n), rows(n)}
	steps[0].Seqs = []kernels.Seq{{First: 0, Count: 5, Context: 5, Blocks: table(2)}, {First: 5, Count: 7, Context: 7, Blocks: table(0)}}
	steps[1].Seqs = []kernels.Seq{{First: 0, Count: 9, Context: 16, Blocks: table(0)}, {First: 9, Count: 1, Context: 6, Blocks: table(2)},
		{First: 10, Count: 2, Context: 2, Blocks: table(1)}}
	s := newScene(t, b, 21)
	op := &kernels.Delta{QKV: s.random(n, channels), Gates: s.random(n, 2*valueHeads), Out: s.p.New(kernels.Tokens, valueHeads*valueDim),
		Conv: s.matrix(kernels.FormatF32, channels, taps), ALog: s.vector(valueHeads, 0), DtBias: s.vector(valueHeads, 0),
		Layer: 1, KeyHeads: keyHeads, ValueHeads: valueHeads, KeyDim: keyDim, ValueDim: valueDim}
	op.KV = s.pages(kernels.KVSpec{Layers: 2, Blocks: 3, Type: kernels.F32, StateBytes: op.StateBytes()})
	s.p.Do(op)
	s.p.Do(&kernels.Output{In: op.Out})
	e := s.compile(kernels.Limits{Tokens: n, Seqs: 3})
	for _, step := range steps {
		if !apart {
			out, _ := run(t, e, step)
			results = append(results, out...)
			continue
		}
		for _, q := range step.Seqs {
			for i := range q.Count {
				row := q.First + i
				one := &kernels.Step{Tokens: step.Tokens[row : row+1], Positions: step.Positions[row : row+1],
					Seqs: []kernels.Seq{{Count: 1, Context: q.Context - q.Count + i + 1, Blocks: q.Blocks}}}
				out, _ := run(t, e, one)
				results = append(results, out...)
			}
		}
	}
	return results
}
