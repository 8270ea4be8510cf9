//go:build pocl

package xpu

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// rowsOfLogits is a program whose rows of logits are those of a table, and the step that
// samples from the first n of them.
func rowsOfLogits(t *testing.T, b *Backend, x []float32, vocab, n int) (kernels.Executable, *kernels.Step) {
	t.Helper()
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	table, err := b.Weight(kernels.Source{Name: "logits", Out: len(x) / vocab, In: vocab, Type: kernels.F32, Data: raw}, kernels.FormatF32)
	if err != nil {
		t.Fatal(err)
	}
	p := &kernels.Program{}
	rows, logits := p.New(kernels.Tokens, vocab), p.New(kernels.Sampled, vocab)
	p.Do(&kernels.Embed{Out: rows, Table: table})
	p.Do(&kernels.Pick{In: rows, Out: logits})
	p.Do(&kernels.Sample{Logits: logits})
	e, err := b.Compile(p, kernels.Limits{Tokens: n, Seqs: n, Rows: n})
	if err != nil {
		t.Fatal(err)
	}
	s := &kernels.Step{}
	for i := range int32(n) {
		s.Tokens, s.Positions, s.Rows = append(s.Tokens, i), append(s.Positions, 0), append(s.Rows, i)
		s.Seqs = append(s.Seqs, kernels.Seq{First: i, Count: 1, Context: 1})
	}
	return e, s
}

// Of what is usually asked for, candidates alone come to the host, with one wait; the
// choices are the reference's.
func TestCandidatesAlone(t *testing.T) {
	const vocab, rounds = 20011, 3
	samplings := []kernels.Sampling{
		{TopP: 1}, // the greatest
		{TopP: 1, Top: 20, Probe: []int32{7, 20010}},
		{Temperature: 0.7, TopK: 40, TopP: 1},
		{Temperature: 0.7, TopK: 20, TopP: 0.8},
		{Temperature: 0.6, TopP: 0.95},
		{Temperature: 1, TopP: 1, MinP: 0.05},
		{Temperature: 0.8, TopP: 0.9, Edits: []kernels.Edit{{Token: 3, Repetition: 1.1}, {Token: 900, Repetition: 1, Add: -100}, {Token: 12345, Repetition: 1, Add: 1}}},
	}
	b := open(t, Tuning{})
	rng := rand.New(rand.NewPCG(4, 4))
	x := make([]float32, len(samplings)*vocab)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * 5)
	}
	e, s := rowsOfLogits(t, b, x, vocab, len(samplings))
	s.Sampling = samplings
	var out kernels.Result
	for round := range rounds {
		for i := range samplings {
			samplings[i].Seed, samplings[i].Position = uint64(round), uint32(i)
		}
		waits, brought := b.ctx.Waits, b.ctx.Brought
		if err := e.Run(s, &out); err != nil {
			t.Fatal(err)
		}
		if waits = b.ctx.Waits - waits; waits != 1 {
			t.Errorf("a step waited %d times for the device", waits)
		}
		if brought = b.ctx.Brought - brought; brought > int64(1024*len(samplings)) {
			t.Errorf("a step of %d rows brought %d bytes to the host; a row is %d", len(samplings), brought, 4*vocab)
		}
		for i := range samplings {
			want := ref.Describe(x[i*vocab:][:vocab], &samplings[i])
			got := out.Sampled[i]
			if math.Abs(float64(got.LogSumExp-want.LogSumExp)) > 1e-5 {
				t.Errorf("sampling %d: log-sum-exp %v; want %v", i, got.LogSumExp, want.LogSumExp)
			}
			got.LogSumExp = want.LogSumExp
			if len(got.Top)+len(want.Top) == 0 {
				got.Top, want.Top = nil, nil
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("sampling %d: got %+v; want %+v", i, got, want)
			}
		}
	}
	if n := e.(*executable).sampler.wholeRows; n != 0 {
		t.Errorf("%d whole rows came to the host", n)
	}
}

// A draw from everything is the definition's, and takes a row only where edits move it
// or where the token is not among the first.
func TestDrawsFromEverything(t *testing.T) {
	const vocab, n = 5003, 64
	b := open(t, Tuning{})
	rng := rand.New(rand.NewPCG(5, 5))
	x := make([]float32, n*vocab)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	e, s := rowsOfLogits(t, b, x, vocab, n)
	for i := range n {
		s.Sampling = append(s.Sampling, kernels.Sampling{Temperature: 1, TopP: 1, Seed: 11, Position: uint32(i)})
		if i%4 == 3 {
			s.Sampling[i].Edits = []kernels.Edit{{Token: int32(i), Repetition: 1, Add: 5}, {Token: 4000, Repetition: 1.2}}
		}
		if i%4 == 2 {
			s.Sampling[i].Allowed = make([]uint32, (vocab+31)/32)
			for w := range s.Sampling[i].Allowed {
				s.Sampling[i].Allowed[w] = rng.Uint32()
			}
		}
	}
	var out kernels.Result
	if err := e.Run(s, &out); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		want := ref.Describe(x[i*vocab:][:vocab], &s.Sampling[i])
		if got := out.Sampled[i]; got.Token != want.Token || got.Rank != want.Rank || got.Logit != want.Logit {
			t.Errorf("row %d: got %+v; want %+v", i, got, want)
		}
	}
}
