package kerneltest

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// heard is a step of sequences of (count, context), of which those that begin bring
// frames; each has the block of its number.
func heard(frames, width int, seqs [][2]int, blocks ...int32) *kernels.Step {
	s := &kernels.Step{}
	rng := rand.New(rand.NewPCG(uint64(len(seqs)), 5))
	for i, l := range seqs {
		q := kernels.Seq{First: int32(len(s.Tokens)), Count: int32(l[0]), Context: int32(l[1]), Blocks: [][]int32{blocks[i : i+1]}}
		if l[0] == l[1] {
			q.Frames = int32(frames)
			for range frames * width {
				s.Features = append(s.Features, float32(rng.NormFloat64()))
			}
		}
		for k := l[1] - l[0]; k < l[1]; k++ {
			s.Tokens, s.Positions = append(s.Tokens, int32(len(s.Tokens))), append(s.Positions, int32(k))
		}
		s.Seqs = append(s.Seqs, q)
	}
	return s
}

// crossed is attention over frames, of two layers, the second of which is read.
func (s *scene) crossed(frames, tokens int, spec kernels.KVSpec) kernels.Executable {
	const heads, dim = 4, 20
	spec.Layers, spec.Blocks, spec.Heads, spec.KeyDim, spec.ValueDim, spec.Cross = 2, 5, heads, dim, dim, true
	kv := s.pages(spec)
	x := s.p.New(kernels.Frames, 24)
	s.p.Do(&kernels.Features{Out: x})
	query := s.random(tokens, heads*dim+3)
	for layer := range spec.Layers {
		both := s.p.New(kernels.Frames, 2*heads*dim)
		s.p.Do(&kernels.Linear{In: x, Out: both, Add: kernels.None, Weights: []kernels.Weight{s.matrix(kernels.FormatF32, 2*heads*dim, 24)}})
		out := s.p.New(kernels.Tokens, heads*dim)
		s.p.Do(&kernels.Attention{Q: query, QFirst: 3, K: both, V: both, VFirst: heads * dim, Out: out, KV: kv, Layer: layer,
			Heads: heads, KVHeads: heads, KeyDim: dim, ValueDim: dim, Scale: 0.4, Cross: frames})
		s.p.Do(&kernels.Output{In: out})
	}
	e, err := s.b.Compile(s.p, kernels.Limits{Tokens: tokens, Seqs: 4, Frames: 2 * frames})
	if errors.Is(err, errors.ErrUnsupported) {
		s.missing = true
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// testCross attends over frames that came with a sequence's first step, in that step
// and later, alone and among others; pages of every type.
func testCross(t *testing.T, b kernels.Backend) {
	for _, frames := range []int{1, 20, 300} {
		for _, pages := range []kernels.DType{kernels.F32, kernels.BF16, kernels.F8E4M3, kernels.Int8} {
			s, r := newScene(t, b, 50), newScene(t, ref.New(), 50)
			spec := kernels.KVSpec{BlockTokens: frames + 4, Type: pages}
			got := s.crossed(frames, 64, spec)
			if s.missing {
				t.Logf("%s has no attention over frames", b.Name())
				return
			}
			want := r.crossed(frames, 64, spec)
			tol := tolerance{abs: 1e-5, rel: 1e-5}
			if pages != kernels.F32 {
				tol.abs = 2e-3 // what lies between two numbers of a page rounds to either
			}
			var alone [][]float32
			for i, step := range []*kernels.Step{
				heard(frames, 24, [][2]int{{3, 3}, {1, 1}}, 4, 0),
				heard(frames, 24, [][2]int{{1, 4}, {40, 40}, {2, 3}}, 4, 2, 0),
				heard(frames, 24, [][2]int{{1, 5}}, 4),
				heard(frames, 24, [][2]int{{1, 5}, {1, 41}, {1, 4}}, 4, 2, 0),
			} {
				rows, _ := run(t, got, step)
				wanted, _ := run(t, want, step)
				tol.close(t, rows, wanted)
				if i == 2 {
					alone = rows
				} else if i == 3 {
					same(t, "a sequence among others", [][]float32{rows[0], rows[3]}, alone)
				}
			}
			refuseFrames(t, got, frames)
		}
	}
}

// refuseFrames gives steps whose frames or blocks are not those of their sequences.
func refuseFrames(t *testing.T, e kernels.Executable, frames int) {
	t.Helper()
	f := func(want string, spoil func(s *kernels.Step)) {
		t.Helper()
		step := heard(frames, 24, [][2]int{{1, 4}, {2, 2}}, 1, 2)
		spoil(step)
		var failed *kernels.StepError
		if err := e.Run(step, new(kernels.Result)); !errors.As(err, &failed) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	f("brings 0 frames in a step from token 0 on", func(s *kernels.Step) { s.Seqs[1].Frames, s.Features = 0, nil })
	f("frames in a step from token 3 on; want 0", func(s *kernels.Step) { s.Seqs[0].Frames = int32(frames) })
	f("has no block of frames", func(s *kernels.Step) { s.Seqs[1].Blocks = nil })
	f("block of frames in table 0 is 5, of 5", func(s *kernels.Step) { s.Seqs[1].Blocks = [][]int32{{5}} })
}

// testTimes chooses among tokens of which the last are times, at every temperature.
func testTimes(t *testing.T, b kernels.Backend) {
	const vocab = 300
	rng := rand.New(rand.NewPCG(9, 9))
	step, x := rows(0), []float32{}
	for i := range 60 {
		sm := kernels.Sampling{TopP: 1, Times: 200, Allowed: make([]uint32, (vocab+31)/32), Temperature: float32(i%3) / 2, Seed: rng.Uint64()}
		for token := range vocab {
			if i%5 > 0 || token < 200 || token == 250 {
				sm.Allowed[token/32] |= 1 << (token % 32)
			}
			x = append(x, float32(math.Round(rng.NormFloat64()*16)/8))
		}
		x[i*vocab+i] += float32(i) / 12 // from times together to one word
		step.Tokens, step.Positions, step.Rows = append(step.Tokens, int32(i)), append(step.Positions, 0), append(step.Rows, int32(i))
		step.Seqs, step.Sampling = append(step.Seqs, kernels.Seq{First: int32(i), Count: 1, Context: 1}), append(step.Sampling, sm)
	}
	var got kernels.Result
	err := sampler(t, b, x, vocab, 60, 0).Run(step, &got)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Logf("%s has no times among tokens", b.Name())
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	_, want := run(t, sampler(t, ref.New(), x, vocab, 60, 0), step)
	times := 0
	for i, c := range got.Sampled {
		sameChoice(t, name("sampling %d", i), c, want[i])
		if c.Token >= 200 {
			times++
		}
	}
	if times < 5 || times > 55 {
		t.Errorf("%d of 60 choices are times; the rule was hardly asked", times)
	}
	step.Sampling[7].Allowed = nil
	if err := sampler(t, b, x, vocab, 60, 0).Run(step, &got); err == nil {
		t.Error("times without a mask were accepted")
	}
}
