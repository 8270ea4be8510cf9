package kerneltest

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// sampler is a program that samples from the rows of x.
func sampler(t testing.TB, b kernels.Backend, x []float32, vocab, n int, cap float32) kernels.Executable {
	t.Helper()
	s := newScene(t, b, 0)
	logits := s.p.New(kernels.Sampled, vocab)
	s.p.Do(&kernels.Pick{In: s.input(x, vocab), Out: logits})
	s.p.Do(&kernels.Sample{Logits: logits, SoftCap: cap})
	return s.compile(kernels.Limits{Tokens: n, Seqs: n, Rows: n})
}

// samplings is one of each way to choose, for a vocabulary of size vocab.
func samplings(rng *rand.Rand, vocab int) []kernels.Sampling {
	all := []kernels.Sampling{
		{TopP: 1},
		{TopP: 1, Top: 5},
		{TopP: 1, Temperature: 1},
		{TopP: 1, Temperature: 0.7, TopK: 5, Top: 64},
		{TopP: 0.9, Temperature: 1},
		{TopP: 0.999, Temperature: 2},
		{TopP: 1e-6, Temperature: 1},
		{TopP: 1, MinP: 0.05, Temperature: 1},
		{TopP: 0.8, MinP: 0.01, TopK: 20, Temperature: 1.5, Top: 1},
		{TopP: 1, TopK: 1, Temperature: 1},
		{TopP: 0.95, Temperature: 0.01},
	}
	edited := kernels.Sampling{TopP: 0.95, Temperature: 1, Top: 3}
	for i := 0; i < vocab; i += 1 + rng.IntN(9) {
		edited.Edits = append(edited.Edits, kernels.Edit{Token: int32(i), Repetition: 1.3, Add: float32(rng.NormFloat64())})
	}
	masked := kernels.Sampling{TopP: 1, Temperature: 1, Allowed: make([]uint32, (vocab+31)/32)}
	for range 1 + vocab/50 {
		i := rng.IntN(vocab)
		masked.Allowed[i/32] |= 1 << (i % 32)
	}
	greedy, both := masked, masked
	greedy.Temperature = 0
	both.Edits, both.TopK = edited.Edits, 3
	nothing := kernels.Sampling{TopP: 1, Allowed: make([]uint32, (vocab+31)/32)}
	all = append(all, edited, masked, greedy, both, nothing)
	for i := range all {
		all[i].Seed, all[i].Branch, all[i].Position = rng.Uint64(), uint32(i), rng.Uint32()
		all[i].Probe = []int32{int32(rng.IntN(vocab)), 0}
	}
	return all
}

func testSample(t *testing.T, b kernels.Backend) {
	for _, vocab := range []int{1, 2, 17, 64, 100, 1024, 5001, 32064} {
		for _, cap := range []float32{0, 30} {
			rng := rand.New(rand.NewPCG(uint64(vocab), 3))
			all := samplings(rng, vocab)
			x := make([]float32, len(all)*vocab)
			for i := range x {
				// Steps of 1/8 make ties; without a cap some are -Inf.
				x[i] = float32(math.Round(rng.NormFloat64()*24) / 8)
				if cap == 0 && rng.IntN(20) == 0 && i%vocab > 0 {
					x[i] = float32(math.Inf(-1))
				}
			}
			step := rows(len(all))
			step.Sampling, step.WantLogits = all, true
			for i := range all {
				step.Rows = append(step.Rows, int32(i))
			}
			gotRows, got := run(t, sampler(t, b, x, vocab, len(all), cap), step)
			wantRows, want := run(t, sampler(t, ref.New(), x, vocab, len(all), cap), step)
			tolerance{rel: 1e-6, abs: 1e-6}.close(t, gotRows, wantRows)
			for i := range want {
				sameChoice(t, name("vocabulary %d, cap %v, sampling %d", vocab, cap, i), got[i], want[i])
			}
		}
	}
}

// sameChoice compares two outcomes: tokens exactly, logits nearly.
func sameChoice(t *testing.T, what string, got, want kernels.Choice) {
	t.Helper()
	near := func(a, b float32) bool {
		return a == b || math.Abs(float64(a-b)) <= 1e-5+1e-6*math.Abs(float64(b))
	}
	ok := got.Token == want.Token && got.Rank == want.Rank && near(got.Logit, want.Logit) && near(got.LogSumExp, want.LogSumExp) &&
		len(got.Top) == len(want.Top) && len(got.Probe) == len(want.Probe)
	for i := range got.Top {
		ok = ok && got.Top[i].Token == want.Top[i].Token && near(got.Top[i].Logit, want.Top[i].Logit)
	}
	for i := range got.Probe {
		ok = ok && near(got.Probe[i], want.Probe[i])
	}
	if !ok {
		t.Fatalf("%s: got %+v; want %+v", what, got, want)
	}
}

// testDraws compares how often each token is drawn with its probability.
func testDraws(t *testing.T, b kernels.Backend) {
	const vocab, rounds, n = 50, 40, 64
	x := make([]float32, vocab)
	for i := range x {
		x[i] = float32(i%7) / 2
	}
	all := make([]float32, 0, n*vocab)
	for range n {
		all = append(all, x...)
	}
	e := sampler(t, b, all, vocab, n, 0)
	step := rows(n)
	for i := range n {
		step.Rows = append(step.Rows, int32(i))
	}
	counts := make([]float64, vocab)
	for r := range rounds {
		step.Sampling = nil
		for i := range n {
			step.Sampling = append(step.Sampling, kernels.Sampling{Temperature: 1, TopP: 1, Seed: 9, Position: uint32(r*n + i)})
		}
		_, choices := run(t, e, step)
		for _, c := range choices {
			counts[c.Token]++
		}
	}
	var total, chi float64
	for _, v := range x {
		total += math.Exp(float64(v))
	}
	for i, v := range x {
		want := math.Exp(float64(v)) / total * rounds * n
		chi += (counts[i] - want) * (counts[i] - want) / want
	}
	if chi > 95 { // 49 degrees of freedom: one in ten thousand is beyond 94
		t.Fatalf("draws do not follow the probabilities: chi-squared is %.1f", chi)
	}

	// The same place draws the same token again.
	_, first := run(t, e, step)
	_, second := run(t, e, step)
	if !reflect.DeepEqual(first, second) {
		t.Fatal("the same step drew other tokens")
	}
}
