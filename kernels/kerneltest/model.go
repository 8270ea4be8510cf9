package kerneltest

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// toy is a small decoder: two layers of what Qwen3 is made of.
type toy struct{ e kernels.Executable }

const (
	toyVocab = 300
	toyBlock = 16
)

// newToy records the model on a backend; ok is false where a format is missing.
func newToy(t testing.TB, b kernels.Backend, format kernels.Format, page kernels.DType, limits kernels.Limits) (m *toy, ok bool) {
	t.Helper()
	const hidden, inner, heads, kvHeads, dim = 128, 256, 4, 2, 32
	const qkv = (heads + 2*kvHeads) * dim
	s := newScene(t, b, 30)
	kv := s.pages(kernels.KVSpec{Layers: 2, Blocks: 256, BlockTokens: toyBlock, Heads: kvHeads, KeyDim: dim, ValueDim: dim, Type: page})
	table := s.matrix(kernels.FormatBF16, toyVocab, hidden)
	freq := make([]float64, dim/2)
	for i := range freq {
		freq[i] = math.Pow(1e4, -2*float64(i)/dim)
	}
	p := s.p
	x, y := p.New(kernels.Tokens, hidden), p.New(kernels.Tokens, hidden)
	p.Do(&kernels.Embed{Out: x, Table: table, Scale: 8})
	for layer := range 2 {
		h, q, a := p.New(kernels.Tokens, hidden), p.New(kernels.Tokens, qkv), p.New(kernels.Tokens, heads*dim)
		add := x
		if layer == 0 {
			p.Do(&kernels.Norm{In: x, Out: h, Add: kernels.None, Weight: s.vector(hidden, 1), Eps: 1e-6})
		} else {
			p.Do(&kernels.Norm{In: y, Out: h, Add: add, Weight: s.vector(hidden, 1), Eps: 1e-6})
		}
		p.Do(&kernels.Linear{In: h, Out: q, Add: kernels.None, Weights: []kernels.Weight{s.matrix(format, heads*dim, hidden), s.matrix(format, kvHeads*dim, hidden), s.matrix(format, kvHeads*dim, hidden)}})
		p.Do(&kernels.Norm{In: q, Out: q, Add: kernels.None, Weight: s.vector(dim, 1), Eps: 1e-6, Width: dim, Count: heads + kvHeads})
		p.Do(&kernels.RoPE{X: q, Heads: heads + kvHeads, HeadDim: dim, InvFreq: freq})
		p.Do(&kernels.Attention{Q: q, K: q, V: q, KFirst: heads * dim, VFirst: (heads + kvHeads) * dim, Out: a, KV: kv, Layer: layer,
			Heads: heads, KVHeads: kvHeads, KeyDim: dim, ValueDim: dim, Scale: 1 / math.Sqrt2 / 4})
		p.Do(&kernels.Linear{In: a, Out: y, Add: kernels.None, Weights: []kernels.Weight{s.matrix(format, hidden, heads*dim)}})
		g, up, act := p.New(kernels.Tokens, hidden), p.New(kernels.Tokens, 2*inner), p.New(kernels.Tokens, inner)
		p.Do(&kernels.Norm{In: y, Out: g, Add: x, Weight: s.vector(hidden, 1), Eps: 1e-6})
		p.Do(&kernels.Linear{In: g, Out: up, Add: kernels.None, Weights: []kernels.Weight{s.matrix(format, 2*inner, hidden)}})
		p.Do(&kernels.Activate{In: up, Out: act, Up: true})
		p.Do(&kernels.Linear{In: act, Out: y, Add: kernels.None, Weights: []kernels.Weight{s.matrix(format, hidden, inner)}})
	}
	last, n, logits := p.New(kernels.Sampled, hidden), p.New(kernels.Sampled, hidden), p.New(kernels.Sampled, toyVocab)
	residual := p.New(kernels.Tokens, hidden)
	p.Do(&kernels.Scale{In: y, Gate: kernels.None, Add: x, Out: residual})
	p.Do(&kernels.Pick{In: residual, Out: last})
	p.Do(&kernels.Norm{In: last, Out: n, Add: kernels.None, Weight: s.vector(hidden, 1), Eps: 1e-6})
	p.Do(&kernels.Linear{In: n, Out: logits, Add: kernels.None, Weights: []kernels.Weight{table}})
	p.Do(&kernels.Sample{Logits: logits})
	if s.missing {
		return nil, false
	}
	return &toy{e: s.compile(limits)}, true
}

// stream is one sequence as the toy sees it.
type stream struct {
	ids    []int32
	done   int // tokens computed
	table  []int32
	logits [][]float32 // of every position
}

// prompt is n tokens of a seed.
func prompt(n int, seed uint64) *stream {
	rng := rand.New(rand.NewPCG(seed, 4))
	s := &stream{}
	for range n {
		s.ids = append(s.ids, int32(rng.IntN(toyVocab)))
	}
	return s
}

// advance runs one step: counts[i] more tokens of each stream, and keeps the
// logits of all of them.
func (m *toy) advance(t testing.TB, streams []*stream, counts []int, free *[]int32) []kernels.Choice {
	t.Helper()
	step := &kernels.Step{WantLogits: true}
	for i, q := range streams {
		if counts[i] == 0 {
			continue
		}
		for len(q.table)*toyBlock < q.done+counts[i] {
			q.table = append(q.table, (*free)[0])
			*free = (*free)[1:]
		}
		step.Seqs = append(step.Seqs, kernels.Seq{First: int32(len(step.Tokens)), Count: int32(counts[i]), Context: int32(q.done + counts[i]), Blocks: [][]int32{q.table}})
		for k := range counts[i] {
			step.Rows = append(step.Rows, int32(len(step.Tokens)))
			step.Sampling = append(step.Sampling, kernels.Sampling{Temperature: 1, TopP: 0.9, Seed: 5, Position: uint32(q.done + k), Top: 4})
			step.Tokens = append(step.Tokens, q.ids[q.done+k])
			step.Positions = append(step.Positions, int32(q.done+k))
		}
	}
	logits, choices := run(t, m.e, step)
	for i, q := range streams {
		q.logits = append(q.logits, logits[:counts[i]]...)
		logits = logits[counts[i]:]
		q.done += counts[i]
	}
	return choices
}

// testModel compares the toy with the reference.
func testModel(t *testing.T, b kernels.Backend) {
	for _, format := range formats {
		limits := kernels.Limits{Tokens: 80, Seqs: 2, Rows: 80}
		m, ok := newToy(t, b, format, kernels.BF16, limits)
		if !ok {
			continue
		}
		r, _ := newToy(t, ref.New(), format, kernels.BF16, limits)
		var logits [2][][]float32
		for i, m := range []*toy{m, r} {
			free := shuffled(256, 1)
			q := prompt(70, 1)
			m.advance(t, []*stream{q}, []int{69}, &free)
			m.advance(t, []*stream{q}, []int{1}, &free)
			logits[i] = q.logits
		}
		// Operands that lie between two bf16 or int8 numbers may round to
		// either, so single logits differ; their mean must not.
		var diff, size float64
		for i := range logits[0] {
			for k := range logits[0][i] {
				diff += math.Abs(float64(logits[0][i][k] - logits[1][i][k]))
				size += math.Abs(float64(logits[1][i][k]))
			}
		}
		t.Logf("%v: mean difference %.2g of the mean logit", format, diff/size)
		if !(diff < 2e-2*size) {
			t.Fatalf("%v: logits differ by %.3g of their size", format, diff/size)
		}
	}
}

// testCompany checks that a sequence gets the same bits in any company: alone,
// token by token, in chunks, in a batch of 64, with its pages elsewhere.
func testCompany(t *testing.T, b kernels.Backend) {
	companyOf(t, b, kernels.FormatF32, kernels.Int8)
	for _, format := range formats {
		companyOf(t, b, format, kernels.BF16)
	}
}

func companyOf(t *testing.T, b kernels.Backend, format kernels.Format, page kernels.DType) {
	t.Helper()
	full := format == kernels.FormatBF16 || format == kernels.FormatInt4
	n := 40
	if full {
		n = 290 // beyond one split of 256
	}
	limits := kernels.Limits{Tokens: 600, Seqs: 64, Rows: 600}
	m, ok := newToy(t, b, format, page, limits)
	if !ok {
		return
	}
	f := func(what string, want [][]float32, seed uint64, counts ...int) [][]float32 {
		t.Helper()
		q := prompt(n, 1)
		free := shuffled(256, seed)
		for _, c := range counts {
			m.advance(t, []*stream{q}, []int{c}, &free)
		}
		if want != nil {
			same(t, name("%v, pages of %v, %s", format, page, what), q.logits, want)
		}
		return q.logits
	}
	whole := f("whole", nil, 1, n)
	if !full {
		f("in chunks", whole, 3, 1, 2, 3, 4, 7, 16, 7)
		return
	}
	f("again, other pages", whole, 2, n)
	f("in chunks", whole, 3, 1, 2, 3, 4, 7, 16, 100, 123, 33, 1)
	f("cut at a page", whole, 4, 256, 34)

	// In a batch of 64: the others are of other lengths, and its place moves.
	q := prompt(n, 1)
	free := shuffled(256, 5)
	streams, counts := []*stream{}, []int{}
	for i := range 63 {
		streams, counts = append(streams, prompt(40, uint64(10+i))), append(counts, 1+i%9)
	}
	streams, counts = append(streams[:30], append([]*stream{q}, streams[30:]...)...), append(counts[:30], append([]int{240}, counts[30:]...)...)
	m.advance(t, streams, counts, &free)
	for i := range counts {
		counts[i] = 1
	}
	for q.done < n {
		if q.done == 250 {
			counts[30] = n - 250
		}
		m.advance(t, streams[:31], counts[:31], &free)
		for _, s := range streams[:30] {
			if s.done > 30 {
				s.done = 5
			}
		}
	}
	same(t, name("%v, in a batch", format), q.logits, whole)
}

// Equal checks that two backends give the same bits: LoRA, convolutions, and the toy in every
// format that both have.
func Equal(t *testing.T, a, b kernels.Backend) {
	t.Helper()
	equalLoRA(t, a, b)
	equalConvolutions(t, a, b)
	equalNorms(t, a, b)
	for _, format := range formats {
		for _, page := range []kernels.DType{kernels.BF16, kernels.F32, kernels.Int8} {
			if page != kernels.BF16 && format != kernels.FormatF32 {
				continue
			}
			limits := kernels.Limits{Tokens: 400, Seqs: 3, Rows: 400}
			m, okA := newToy(t, a, format, page, limits)
			n, okB := newToy(t, b, format, page, limits)
			if !okA || !okB {
				continue
			}
			var logits [2][][]float32
			var choices [2][]kernels.Choice
			for i, m := range []*toy{m, n} {
				free := shuffled(256, 1)
				streams := []*stream{prompt(260, 1), prompt(40, 2), prompt(61, 3)}
				for _, counts := range [][]int{{257, 33, 50}, {1, 1, 1}, {2, 5, 10}} {
					choices[i] = append(choices[i], m.advance(t, streams, counts, &free)...)
				}
				for _, s := range streams {
					logits[i] = append(logits[i], s.logits...)
				}
			}
			what := name("%v, pages of %v: %s and %s", format, page, a.Name(), b.Name())
			same(t, what, logits[0], logits[1])
			if !reflect.DeepEqual(choices[0], choices[1]) {
				t.Fatalf("%s chose other tokens", what)
			}
		}
	}
}

// testErrors gives what must be refused, with a reason.
func testErrors(t *testing.T, b kernels.Backend) {
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Fatalf("%s was accepted", what)
		}
	}
	_, err := b.Weight(kernels.Source{Name: "short", Out: 4, In: 4, Type: kernels.F32, Data: make([]byte, 60)}, kernels.FormatF32)
	refused("a weight whose data is cut short", err)
	_, err = b.Weight(source("odd", 4, 100, make([]float32, 400)), kernels.FormatInt4)
	refused("sym_int4 with 100 columns", err)
	_, err = b.Compile(&kernels.Program{Ops: []kernels.Op{&kernels.Output{In: 3}}}, kernels.Limits{})
	refused("a program that reads a value it does not have", err)

	m, _ := newToy(t, b, kernels.FormatF32, kernels.F32, kernels.Limits{Tokens: 8, Seqs: 1, Rows: 1})
	refused("a step above the limit", m.e.Run(rows(9), &kernels.Result{}))
	testWrongSequences(t, b)
}

// testWrongSequences: of a step with two sequences the second asks for what is not
// there. The error names it, and the step runs once that is mended.
func testWrongSequences(t *testing.T, b kernels.Backend) {
	m, _ := newToy(t, b, kernels.FormatF32, kernels.F32, kernels.Limits{Tokens: 8, Seqs: 2, Rows: 2})
	f := func(what string, spoil func(s *kernels.Step)) {
		t.Helper()
		step := func() *kernels.Step {
			s := ragged(toyBlock, []int32{0, 1}, [][2]int{{2, 2}, {3, 3}})
			s.Rows, s.Sampling = []int32{1, 4}, []kernels.Sampling{{TopP: 1}, {TopP: 1}}
			return s
		}
		bad, out := step(), kernels.Result{}
		spoil(bad)
		var wrong *kernels.StepError
		if err := m.e.Run(bad, &out); !errors.As(err, &wrong) || wrong.Seq != 1 {
			t.Fatalf("%s: error %v; want one of sequence 1", what, err)
		}
		if err := m.e.Run(step(), &out); err != nil {
			t.Fatalf("a good step after one with %s: %v", what, err)
		}
	}
	f("a token beyond the vocabulary", func(s *kernels.Step) { s.Tokens[3] = toyVocab })
	f("a negative token", func(s *kernels.Step) { s.Tokens[2] = -1 })
	f("an adapter that is not there", func(s *kernels.Step) { s.Seqs[1].Adapter = 1 })
	f("no block tables", func(s *kernels.Step) { s.Seqs[1].Blocks = nil })
	f("a block table that is too short", func(s *kernels.Step) { s.Seqs[1].Blocks = [][]int32{{}} })
	f("a block beyond the pages", func(s *kernels.Step) { s.Seqs[1].Blocks = [][]int32{{256}} })
	f("a block that was given back", func(s *kernels.Step) { s.Seqs[1].Blocks = [][]int32{{-1}} })
	f("a mask that is too short", func(s *kernels.Step) { s.Sampling[1].Allowed = make([]uint32, toyVocab/32) })
	f("a mask that is too long", func(s *kernels.Step) { s.Sampling[1].Allowed = make([]uint32, toyVocab/32+2) })
	f("an edit beyond the vocabulary", func(s *kernels.Step) { s.Sampling[1].Edits = []kernels.Edit{{Token: toyVocab, Repetition: 1}} })
	f("a probe beyond the vocabulary", func(s *kernels.Step) { s.Sampling[1].Probe = []int32{-1} })
	f("a min_p above one", func(s *kernels.Step) { s.Sampling[1].MinP = 2 })
}

// Panics: a panic of a kernel, which spoil brings about, is an error of its step,
// and once it is undone the next step computes what it did before.
func Panics(t *testing.T, b kernels.Backend, spoil func(kernels.Executable) (undo func())) {
	t.Helper()
	m, _ := newToy(t, b, kernels.FormatF32, kernels.F32, kernels.Limits{Tokens: 8, Seqs: 2, Rows: 2})
	step := ragged(toyBlock, []int32{0, 1}, [][2]int{{2, 2}, {3, 3}})
	step.Rows, step.Sampling = []int32{1, 4}, []kernels.Sampling{{TopP: 1}, {TopP: 1}}
	_, want := run(t, m.e, step)
	undo := spoil(m.e)
	var wrong *kernels.StepError
	if err := m.e.Run(step, &kernels.Result{}); !errors.As(err, &wrong) || wrong.Seq != -1 || len(wrong.Stack) == 0 {
		t.Fatalf("error %v; want one of all sequences, with its stack", err)
	}
	undo()
	if _, got := run(t, m.e, step); !reflect.DeepEqual(got, want) {
		t.Fatalf("after a panic the step chose %+v; want %+v", got, want)
	}
}
