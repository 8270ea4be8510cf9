package kerneltest

import (
	"slices"
	"testing"
	"time"

	"roundhouse/kernels"
)

// The sizes at which operations other than linears are timed: the rows of a
// prompt, and the widths of a model of about a billion weights.
const (
	benchRows  = 512
	benchWidth = 1024
	benchVocab = 151936
	benchTimes = 8 // an operation stands in a program so often
)

// timed is one operation for a benchmark.
type timed struct {
	name        string
	rows, width int            // of its input
	bytes, flop float64        // that it reads and writes, and computes, each time
	format      kernels.Format // of a convolution's weight
	step        func() *kernels.Step
	do          func(s *scene, in kernels.Tensor) // adds it to the program once
}

// benchOps times every operation that has no benchmark of its own: what it moves
// in GB/s and computes in GFLOP/s, beside what a bare loop reads (%read) and, where
// it multiplies as linears do, what one computes (%peak). What the step costs
// without the operation is taken off.
func benchOps(b *testing.B, backend kernels.Backend, read float64, peak func(kernels.Format) float64) {
	for _, o := range append(rowOps(), wholeOps()...) {
		b.Run(o.name, func(b *testing.B) { o.bench(b, backend, roof{read: read}) })
	}
	for _, o := range convolutionOps() {
		b.Run(o.name, func(b *testing.B) { o.bench(b, backend, roof{read: read, flop: peak(o.format)}) })
	}
}

func (o *timed) bench(b *testing.B, backend kernels.Backend, top roof) {
	step := rows(o.rows)
	if o.step != nil {
		step = o.step()
	}
	program := func(times int) kernels.Executable {
		s := newScene(b, backend, 9)
		in := s.random(o.rows, o.width)
		for range times {
			o.do(s, in)
		}
		if times == 0 {
			s.p.Do(&kernels.Output{In: in})
		}
		if s.missing {
			b.Skipf("%s does not have it", backend.Name())
		}
		return s.compile(limitsOf(step))
	}
	var r kernels.Result
	run := func(e kernels.Executable, step *kernels.Step) {
		if err := e.Run(step, &r); err != nil {
			b.Fatal(err)
		}
	}
	empty, bare := program(0), *step
	bare.Seqs, bare.Features = slices.Clone(step.Seqs), nil
	for i := range bare.Seqs {
		bare.Seqs[i].Adapter = 0 // it has none
	}
	run(empty, &bare)
	best := time.Hour
	for range 20 {
		start := time.Now()
		run(empty, &bare)
		best = min(best, time.Since(start))
	}
	e := program(benchTimes)
	for b.Loop() {
		run(e, step)
	}
	seconds := max((b.Elapsed().Seconds()/float64(b.N)-best.Seconds())/benchTimes, 1e-9)
	b.ReportMetric(o.bytes/seconds/1e9, "GB/s")
	if top.read > 0 {
		b.ReportMetric(100*o.bytes/seconds/top.read, "%read")
	}
	if o.flop > 0 {
		b.ReportMetric(o.flop/seconds/1e9, "GFLOP/s")
	}
	if top.flop > 0 {
		b.ReportMetric(100*o.flop/seconds/top.flop, "%peak")
	}
}

// rowOps are those that work row by row.
func rowOps() []timed {
	const n, w = benchRows, benchWidth
	value := func(width int) float64 { return 4 * n * float64(width) }
	return []timed{
		{name: "Norm", rows: n, width: w, bytes: 2 * value(w), flop: 4 * n * w, do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Norm{In: in, Out: s.p.New(kernels.Tokens, w), Add: kernels.None, Weight: s.vector(w, 1), Eps: 1e-6})
		}},
		{name: "LayerNorm", rows: n, width: w, bytes: 2 * value(w), flop: 6 * n * w, do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Norm{In: in, Out: s.p.New(kernels.Tokens, w), Add: kernels.None, Weight: s.vector(w, 1), Bias: s.vector(w, 0), Eps: 1e-6, Layer: true})
		}},
		{name: "RoPE", rows: n, width: w, bytes: 2 * value(w), flop: 3 * n * w, do: func(s *scene, in kernels.Tensor) {
			frequencies := make([]float64, 64)
			for i := range frequencies {
				frequencies[i] = 1 / float64(1+i)
			}
			s.p.Do(&kernels.RoPE{X: in, Heads: w / 128, HeadDim: 128, InvFreq: frequencies})
		}},
		{name: "SiLU", rows: n, width: 2 * w, bytes: 3 * value(w), flop: 10 * n * w, do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Activate{In: in, Out: s.p.New(kernels.Tokens, w), Kind: kernels.SiLU, Up: true})
		}},
		{name: "GELU", rows: n, width: w, bytes: 2 * value(w), do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Activate{In: in, Out: s.p.New(kernels.Tokens, w), Kind: kernels.GELU})
		}},
		{name: "GELUTanh", rows: n, width: 2 * w, bytes: 3 * value(w), flop: 40 * n * w, do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Activate{In: in, Out: s.p.New(kernels.Tokens, w), Kind: kernels.GELUTanh, Up: true})
		}},
		{name: "Scale", rows: n, width: w, bytes: 3 * value(w), flop: 2 * n * w, do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Scale{In: in, Gate: kernels.None, Add: in, Out: s.p.New(kernels.Tokens, w), Factor: 0.5})
		}},
		{name: "Columns", rows: n, width: w, bytes: 2 * value(w/2), do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Columns{In: in, Out: s.p.New(kernels.Tokens, w/2), First: w / 4})
		}},
		{name: "Pool", rows: n, width: w, bytes: value(w), flop: n * w, step: one, do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Pool{In: in, Out: s.p.New(kernels.Seqs, w), Kind: kernels.PoolMean, Normalise: true})
		}},
		{name: "Embed/bfloat16", rows: n, width: w, bytes: 1.5 * value(w), do: func(s *scene, _ kernels.Tensor) {
			s.p.Do(&kernels.Embed{Out: s.p.New(kernels.Tokens, w), Table: s.matrix(kernels.FormatBF16, n, w)})
		}},
		{name: "Embed/int8", rows: n, width: w, bytes: 1.25 * value(w), do: func(s *scene, _ kernels.Tensor) {
			s.p.Do(&kernels.Embed{Out: s.p.New(kernels.Tokens, w), Table: s.matrix(kernels.FormatInt8, n, w)})
		}},
	}
}

// one is a step of one sequence.
func one() *kernels.Step {
	s := rows(benchRows)
	s.Seqs = []kernels.Seq{{Count: benchRows, Context: benchRows}}
	return s
}

// wholeOps are the mixture of experts, the delta rule, adapters and the choice of tokens.
func wholeOps() []timed {
	const n, w, experts, inner, sampled = 64, benchWidth, 8, 512, 4
	choose := func(sampling kernels.Sampling) func() *kernels.Step {
		return func() *kernels.Step {
			s := rows(sampled)
			for i := range sampled {
				s.Rows = append(s.Rows, int32(i))
				sampling.Position = uint32(i)
				s.Sampling = append(s.Sampling, sampling)
			}
			return s
		}
	}
	sample := func(s *scene, in kernels.Tensor) {
		logits := s.p.New(kernels.Sampled, benchVocab)
		s.p.Do(&kernels.Pick{In: in, Out: logits})
		s.p.Do(&kernels.Sample{Logits: logits})
	}
	return []timed{
		{name: "MoE/sym_int4", rows: n, width: w, bytes: experts * 3 * inner * w / 2, flop: n * 2 * 6 * inner * w, do: func(s *scene, in kernels.Tensor) {
			op := &kernels.MoE{In: in, Out: s.p.New(kernels.Tokens, w), Add: kernels.None, Top: 2, TopFirst: true, Router: s.matrix(kernels.FormatF32, experts, w)}
			for range experts {
				op.GateUp = append(op.GateUp, s.matrix(kernels.FormatInt4, 2*inner, w))
				op.Down = append(op.Down, s.matrix(kernels.FormatInt4, w, inner))
			}
			s.p.Do(op)
		}},
		deltaOp("Delta", n, 8, 8, 64),
		deltaOp("Delta/wide", n, 16, 32, 128), // Qwen3-Next's
		{name: "LoRA", rows: n, width: w, bytes: 8 * 2 * 16 * 2 * w, flop: n * 2 * 16 * 2 * w, step: func() *kernels.Step {
			s := rows(n) // of 8 adapters in turn
			for i := range s.Seqs {
				s.Seqs[i].Adapter = int32(1 + i%8)
			}
			return s
		}, do: func(s *scene, in kernels.Tensor) {
			a, out := s.room(w, w, 8, 16), s.p.New(kernels.Tokens, w)
			for slot := range 8 {
				s.adapt(a, slot, 16, 1)
			}
			s.p.Do(&kernels.Columns{In: in, Out: out})
			s.p.Do(&kernels.LoRA{In: in, Out: out, Adapters: []kernels.Adapters{a}, Columns: []int{0}})
		}},
		{name: "Sample/greedy", rows: sampled, width: benchVocab, bytes: sampled * 4 * benchVocab, step: choose(kernels.Sampling{TopP: 1}), do: sample},
		{name: "Sample/top_p", rows: sampled, width: benchVocab, bytes: sampled * 4 * benchVocab, step: choose(kernels.Sampling{TopP: 0.9, Temperature: 0.8}), do: sample},
	}
}

// deltaOp is a prompt of n tokens through the gated delta rule.
func deltaOp(name string, n, keyHeads, valueHeads, dim int) timed {
	channels := (2*keyHeads + valueHeads) * dim
	return timed{name: name, rows: n, width: channels, bytes: float64(n * 4 * valueHeads * dim * dim * 4), flop: float64(n * 7 * valueHeads * dim * dim), step: func() *kernels.Step {
		s := rows(n)
		s.Seqs = []kernels.Seq{{Count: int32(n), Context: int32(n), Blocks: [][]int32{{0}}}}
		return s
	}, do: func(s *scene, in kernels.Tensor) {
		op := &kernels.Delta{QKV: in, Gates: s.p.New(kernels.Tokens, 2*valueHeads), Out: s.p.New(kernels.Tokens, valueHeads*dim), Conv: s.matrix(kernels.FormatF32, channels, 4),
			ALog: s.vector(valueHeads, 0), DtBias: s.vector(valueHeads, 0), KeyHeads: keyHeads, ValueHeads: valueHeads, KeyDim: dim, ValueDim: dim}
		s.p.Do(&kernels.Columns{In: in, Out: op.Gates})
		op.KV = s.pages(kernels.KVSpec{Layers: 1, Blocks: 1, BlockTokens: 16, Type: kernels.F32, StateBytes: op.StateBytes()})
		s.p.Do(op)
	}}
}

// convolutionOps are what towers begin with, and what is inside of Conformer's
// layers: Whisper's second convolution, patches of an image, a depthwise one.
func convolutionOps() []timed {
	const n, w, taps = benchRows, benchWidth, 31
	var all []timed
	for _, format := range towerFormats {
		size := 2.0
		if format == kernels.FormatF32 {
			size = 4
		}
		all = append(all, timed{name: name("Convolution/%v", format), rows: 2 * n, width: w, format: format,
			bytes: 4*3*n*w + 3*w*w*size, flop: 2 * 3 * n * w * w, step: func() *kernels.Step {
				s := rows(2 * n)
				s.Seqs = []kernels.Seq{{Count: 2 * n, Context: 2 * n}}
				return s
			}, do: func(s *scene, in kernels.Tensor) {
				window := along(3, 2, 1, 1, 1)
				s.p.Do(&kernels.Convolution{In: in, Out: s.p.New(s.p.Over(kernels.Tokens, window), w), Window: window, Weight: s.matrix(format, w, 3*w)})
			}})
	}
	const side, patch = 28, 14
	patches := convolved{channels: 3, outputs: w, window: square(patch, patch, 1, 0, 0), grids: [][2]int{{side * patch, side * patch}}, tokens: true}
	return append(all, timed{name: "Patches/bfloat16", rows: side * side, width: 1, format: kernels.FormatBF16,
		bytes: 4*side*side*(3*patch*patch+w) + 2*3*patch*patch*w, flop: 2 * side * side * 3 * patch * patch * w,
		step: func() *kernels.Step { return patches.step(0, 1, false) }, do: func(s *scene, _ kernels.Tensor) { patches.record(s, kernels.FormatBF16) },
	}, timed{name: "Depthwise/bfloat16", rows: n, width: w, format: kernels.FormatF32,
		bytes: 4 * 2 * n * w, flop: 2 * n * taps * w, step: one, do: func(s *scene, in kernels.Tensor) {
			s.p.Do(&kernels.Convolution{In: in, Out: s.p.New(kernels.Tokens, w), Window: along(taps, 1, 1, taps/2, taps/2), Groups: w, Weight: s.matrix(kernels.FormatBF16, w, taps)})
		}})
}
