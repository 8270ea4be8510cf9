package worker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"roundhouse/worker"
	"roundhouse/worker/kv"
	"roundhouse/worker/workertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup is an engine over the model of no weights.
type setup struct {
	blocks, blockTokens, window int
	limits                      worker.Limits
	maxLen                      int
	noCache                     bool
	ngram                       worker.NGram
	eos                         []int32
	bias                        func([]int32, []float32)
	memory                      worker.Memory // nil: the model's own
	sleepless                   bool          // no memory at all
	adapters                    int           // slots for them
}

const vocab = 64

func start(t *testing.T, s setup) (*worker.Engine, *workertest.Model) {
	t.Helper()
	if s.limits.Tokens == 0 {
		s.limits = worker.Limits{Tokens: 256, Seqs: 64, Rows: 256}
	}
	if s.blocks == 0 {
		s.blocks, s.blockTokens = 1024, 4
	}
	if s.maxLen == 0 {
		s.maxLen = 512
	}
	groups := []kv.Group{{Blocks: s.blocks, BlockTokens: s.blockTokens}}
	if s.window > 0 {
		groups = append(groups, kv.Group{Blocks: s.blocks, BlockTokens: s.blockTokens, Window: s.window})
	}
	m := workertest.New(vocab, groups)
	m.Bias = s.bias
	if s.memory == nil && !s.sleepless {
		s.memory = m
	}
	m.Adapters = make([]uint64, s.adapters)
	e := worker.NewEngine(worker.Config{
		Adapters: worker.AdapterSlots{Count: s.adapters, Load: func(slot int, path string) error { return loadAdapter(m, slot, path) }},
		Exec:     m, Memory: s.memory, Groups: groups, PrefixCache: !s.noCache, Limits: s.limits, MaxModelLen: s.maxLen,
		Vocab: vocab, EOS: s.eos, NGram: s.ngram, Models: []string{"m"}, Generation: "g",
	})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil && !t.Failed() {
			t.Errorf("engine: %v", err)
		}
	})
	return e, m
}

func params(n int) worker.Params {
	return worker.Params{N: 1, MaxTokens: n, TopP: 1, Repetition: 1, Logprobs: -1, PromptLogprobs: -1}
}

func prompt(n, seed int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32((i*7 + seed*13 + i*i*seed) % vocab)
	}
	return out
}

// answer collects the tokens of each choice, and why it ended.
type answer struct {
	tokens [][]int32
	why    []worker.Finish
	cached int
	err    error
}

func collect(s *worker.Stream, n int) answer {
	defer s.Close()
	a := answer{tokens: make([][]int32, n), why: make([]worker.Finish, n)}
	for left := n; left > 0; {
		events, err := s.Next(context.Background())
		if err != nil {
			a.err = err
			return a
		}
		for _, e := range events {
			if e.Token >= 0 {
				a.tokens[e.Choice] = append(a.tokens[e.Choice], e.Token)
			}
			if e.Finish != "" {
				a.why[e.Choice] = e.Finish
				a.cached = e.Cached
				left--
			}
			if e.Err != nil {
				a.err = e.Err
			}
		}
	}
	return a
}

func ask(t *testing.T, e *worker.Engine, r worker.Request) answer {
	t.Helper()
	s, err := e.Submit(r)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return collect(s, r.Params.N)
}

// alone gives the tokens of requests that each have an engine's whole room.
func alone(t *testing.T, s setup, reqs []worker.Request) []answer {
	t.Helper()
	e, _ := start(t, s)
	var out []answer
	for _, r := range reqs {
		out = append(out, ask(t, e, r))
	}
	return out
}

func requests(n int) []worker.Request {
	var reqs []worker.Request
	for i := range n {
		p := params(20 + i%30)
		p.Seed = uint64(i)
		switch i % 4 {
		case 1:
			p.Temperature = 0.9
		case 2:
			p.Temperature, p.Presence, p.Frequency, p.Repetition = 1, 0.5, 0.3, 1.1
		case 3:
			p.N, p.Temperature = 3, 1
		}
		reqs = append(reqs, worker.Request{ID: fmt.Sprint(i), Tokens: prompt(1+(i*37)%120, i%7), Params: p})
	}
	return reqs
}

// TestSameTokens holds the promise that a request gives the same tokens in
// any company, chunked, preempted and from the cache.
func TestSameTokens(t *testing.T) {
	reqs := requests(64)
	want := alone(t, setup{noCache: true}, reqs)
	together := func(name string, s setup) {
		t.Run(name, func(t *testing.T) {
			e, m := start(t, s)
			got := make([]answer, len(reqs))
			done := make(chan int)
			release := m.Hold()
			for i, r := range reqs {
				stream, err := e.Submit(r)
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					got[i] = collect(stream, r.Params.N)
					done <- i
				}()
			}
			release()
			for range reqs {
				<-done
			}
			for i := range reqs {
				if got[i].err != nil || fmt.Sprint(got[i].tokens, got[i].why) != fmt.Sprint(want[i].tokens, want[i].why) {
					t.Fatalf("request %d: %v %v\n got %v\nwant %v", i, got[i].err, got[i].why, got[i].tokens, want[i].tokens)
				}
			}
			if s.blocks > 0 && e.Stats().Preemptions == 0 {
				t.Error("nothing was preempted: the case shows nothing")
			}
		})
	}
	together("batch of 64", setup{noCache: true})
	together("cache", setup{})
	together("chunked", setup{limits: worker.Limits{Tokens: 9, Seqs: 8, Rows: 9}})
	together("preempted", setup{blocks: 50, blockTokens: 4, maxLen: 200})
	together("preempted without cache", setup{blocks: 50, blockTokens: 4, maxLen: 200, noCache: true})
	t.Run("second time", func(t *testing.T) {
		e, _ := start(t, setup{})
		for range 2 {
			for i, r := range reqs {
				if got := ask(t, e, r); !slices.EqualFunc(got.tokens, want[i].tokens, slices.Equal) {
					t.Fatalf("request %d: got %v; want %v", i, got.tokens, want[i].tokens)
				}
			}
		}
		if s := e.Stats(); s.PrefixHits == 0 {
			t.Error("the cache was never hit")
		}
	})
}

// TestSameTokensWindow is the same for a model with a sliding window.
func TestSameTokensWindow(t *testing.T) {
	reqs := requests(24)
	want := alone(t, setup{noCache: true, window: 11}, reqs)
	for _, s := range []setup{{window: 11}, {window: 11, limits: worker.Limits{Tokens: 9, Seqs: 8, Rows: 9}}, {window: 11, blocks: 50, blockTokens: 4, maxLen: 200}} {
		e, _ := start(t, s)
		for range 2 {
			for i, r := range reqs {
				if got := ask(t, e, r); !slices.EqualFunc(got.tokens, want[i].tokens, slices.Equal) {
					t.Fatalf("request %d: got %v; want %v", i, got.tokens, want[i].tokens)
				}
			}
		}
		if e.Stats().PrefixHits == 0 {
			t.Error("the cache was never hit")
		}
	}
}

// TestSpeculationChangesNothing compares speculation with none, on texts that
// repeat themselves.
func TestSpeculationChangesNothing(t *testing.T) {
	repeat := func(context []int32, logits []float32) {
		if n := len(context); n > 5 && context[n-1]%3 != 0 {
			logits[context[n-5]] += 8
		}
	}
	reqs := requests(32)
	want := alone(t, setup{noCache: true, bias: repeat}, reqs)
	s := setup{bias: repeat, ngram: worker.NGram{Tokens: 4, Max: 3, Min: 1}, limits: worker.Limits{Tokens: 100, Seqs: 16, Rows: 64}}
	e, _ := start(t, s)
	for i, r := range reqs {
		if got := ask(t, e, r); !slices.EqualFunc(got.tokens, want[i].tokens, slices.Equal) {
			t.Fatalf("request %d: got %v; want %v", i, got.tokens, want[i].tokens)
		}
	}
	if st := e.Stats(); st.AcceptedTokens == 0 || st.AcceptedTokens == st.DraftTokens {
		t.Errorf("%d of %d guesses were right: the case shows nothing", st.AcceptedTokens, st.DraftTokens)
	}
}

// TestResumeTokens cuts every answer at every token.
func TestResumeTokens(t *testing.T) {
	var reqs []worker.Request
	for _, r := range requests(16) {
		if r.Params.N == 1 {
			reqs = append(reqs, r)
		}
	}
	e, _ := start(t, setup{eos: []int32{3, 9}})
	for i, r := range reqs {
		want := ask(t, e, r)
		for cut := 0; cut <= len(want.tokens[0]); cut++ {
			again := r
			again.Resume = want.tokens[0][:cut]
			got := ask(t, e, again)
			if !slices.Equal(got.tokens[0], want.tokens[0][cut:]) || got.why[0] != want.why[0] {
				t.Fatalf("request %d cut at %d: got %v %v; want %v %v", i, cut, got.tokens[0], got.why, want.tokens[0][cut:], want.why)
			}
		}
	}
}
