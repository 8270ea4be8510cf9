package kerneltest

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// Edges is a sampling at the edges of float32 and what it chooses from, by bits
// that a fuzzer draws.
type Edges struct {
	Seed                                  uint64
	Temperature, TopP, MinP, Penalty, Add uint32 // as float32
	TopK                                  int32
	Odd                                   uint32 // a logit that stands among the others, as float32
	Kinds                                 uint8  // bits: mask, ban what the mask allows, odd logits everywhere, edits everywhere
}

const edgeVocab = 700

// logits is the row that is sampled from.
func (e Edges) logits() []float32 {
	rng := rand.New(rand.NewPCG(e.Seed, 9))
	x := make([]float32, edgeVocab)
	for i := range x {
		x[i] = float32(math.Round(rng.NormFloat64()*24) / 8)
		if e.Kinds&4 != 0 || rng.IntN(50) == 0 {
			x[i] = math.Float32frombits(e.Odd)
		}
	}
	return x
}

// sampling is how; ok is false where a step must not say it.
func (e Edges) sampling() (s kernels.Sampling, ok bool) {
	float := math.Float32frombits
	rng := rand.New(rand.NewPCG(e.Seed, 10))
	s = kernels.Sampling{Temperature: float(e.Temperature), TopP: float(e.TopP), MinP: float(e.MinP), TopK: e.TopK, Seed: e.Seed, Top: 5, Probe: []int32{3}}
	edit := kernels.Edit{Repetition: float(e.Penalty), Add: float(e.Add)}
	for i := range int32(edgeVocab) {
		if e.Kinds&8 != 0 || rng.IntN(9) == 0 {
			edit.Token = i
			s.Edits = append(s.Edits, edit)
		}
	}
	if e.Kinds&1 != 0 {
		s.Allowed = make([]uint32, (edgeVocab+31)/32)
		for range rng.IntN(4) {
			i := rng.IntN(edgeVocab)
			s.Allowed[i/32] |= 1 << (i % 32)
			if e.Kinds&2 != 0 {
				s.Edits = []kernels.Edit{{Token: int32(i), Repetition: 1, Add: float32(math.Inf(-1))}}
			}
		}
	}
	within := func(x, least, most float32) bool { return x >= least && x <= most }
	ok = (s.Temperature == 0 || within(s.Temperature, 1e-5, 1e5)) && within(s.TopP, 0, 1) && within(s.MinP, 0, 1)
	for _, e := range s.Edits {
		ok = ok && e.Repetition >= 0 && e.Add == e.Add
	}
	return s, ok
}

// CheckEdges holds a backend to this: what is not a number in a sampling is an
// error of its sequence, and all else chooses a token that may be chosen, the
// reference's where it is greedy, whatever the logits are.
func CheckEdges(t *testing.T, b kernels.Backend, all ...Edges) {
	t.Helper()
	var x []float32
	for _, e := range all {
		x = append(x, e.logits()...)
	}
	exec := sampler(t, b, x, edgeVocab, len(all), 0)
	step, good := rows(len(all)), []Edges(nil)
	step.Tokens = step.Tokens[:0]
	for i, e := range all {
		s, ok := e.sampling()
		if ok {
			step.Rows = append(step.Rows, int32(len(good)))
			step.Sampling = append(step.Sampling, s)
			step.Tokens = append(step.Tokens, int32(i))
			good = append(good, e)
			continue
		}
		one := rows(1)
		one.Rows, one.Sampling = []int32{0}, []kernels.Sampling{s}
		var wrong *kernels.StepError
		if err := exec.Run(one, &kernels.Result{}); !errors.As(err, &wrong) || wrong.Seq != 0 {
			t.Fatalf("%+v: error %v; want one of sequence 0", e, err)
		}
	}
	if len(good) == 0 {
		return
	}
	step.Positions, step.Seqs = step.Positions[:len(good)], step.Seqs[:len(good)]
	_, choices := run(t, exec, step)
	for i, e := range good {
		e.check(t, &step.Sampling[i], choices[i])
	}
}

// check holds one choice to the reference.
func (e Edges) check(t *testing.T, s *kernels.Sampling, got kernels.Choice) {
	t.Helper()
	x := e.logits()
	want := ref.Describe(x, s)
	if got.Token < 0 && want.Token < 0 {
		return
	}
	if got.Token < 0 || want.Token < 0 || int(got.Token) >= len(x) {
		t.Fatalf("%+v: token %d; want %d", e, got.Token, want.Token)
	}
	for _, v := range []float32{got.Logit, got.LogSumExp, got.Top[0].Logit} {
		if v != v || math.IsInf(float64(v), 0) {
			t.Fatalf("%+v: a choice of %+v", e, got)
		}
	}
	if v := x[got.Token]; !(v > float32(math.Inf(-1))) {
		t.Fatalf("%+v: token %d, whose logit is %g", e, got.Token, v)
	}
	if s.Temperature == 0 && got.Token != want.Token {
		t.Fatalf("%+v: token %d; want %d", e, got.Token, want.Token)
	}
	allowed := func(t int32) bool { return s.Allowed == nil || s.Allowed[t/32]>>(t%32)&1 != 0 }
	if allowed(want.Token) && !allowed(got.Token) {
		t.Fatalf("%+v: token %d, which the mask does not allow", e, got.Token)
	}
}

// EdgeCases are the samplings that a fuzzer begins with.
func EdgeCases() []Edges {
	bits := math.Float32bits
	inf, nan, tiny, denormal := bits(float32(math.Inf(1))), bits(float32(math.NaN())), bits(1e-40), uint32(1)
	one, most := bits(1), bits(math.MaxFloat32)
	all := []Edges{
		// A logit becomes infinite by its penalty, and min_p keeps nothing.
		{Seed: 1, Temperature: one, TopP: one, MinP: bits(0.1), Penalty: tiny},
	}
	for _, odd := range []uint32{0, inf, bits(float32(math.Inf(-1))), nan, most, bits(-math.MaxFloat32), denormal} {
		for kinds := range uint8(16) {
			for _, penalty := range []uint32{0, denormal, tiny, one, most, inf} {
				seed := uint64(len(all))
				all = append(all,
					Edges{Seed: seed, TopP: one, Penalty: penalty, Odd: odd, Kinds: kinds},
					Edges{Seed: seed, Temperature: one, TopP: one, MinP: bits(0.1), Penalty: penalty, Odd: odd, Kinds: kinds},
					Edges{Seed: seed, Temperature: bits(1e-5), TopP: bits(0.9), Penalty: penalty, Add: bits(-2), Odd: odd, Kinds: kinds},
					Edges{Seed: seed, Temperature: bits(1e5), TopP: denormal, TopK: 5, MinP: one, Penalty: penalty, Add: most, Odd: odd, Kinds: kinds},
					Edges{Seed: seed, Temperature: bits(2), TopP: 0, TopK: math.MaxInt32, Penalty: penalty, Add: inf, Odd: odd, Kinds: kinds},
					Edges{Seed: seed, Temperature: one, TopP: one, Penalty: penalty, Odd: odd, Kinds: kinds},
				)
			}
		}
	}
	for _, x := range []uint32{nan, inf, bits(-1), bits(1.5)} {
		all = append(all, Edges{Temperature: x, TopP: one, Penalty: one}, Edges{TopP: x, Penalty: one}, Edges{TopP: one, MinP: x, Penalty: one}, Edges{TopP: one, Penalty: x}, Edges{TopP: one, Penalty: one, Add: x})
	}
	return append(all, Edges{Temperature: tiny, TopP: one, Penalty: one})
}

func testEdges(t *testing.T, b kernels.Backend) { CheckEdges(t, b, EdgeCases()...) }
