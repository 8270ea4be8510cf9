package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"roundhouse/kernels"
	"roundhouse/worker"
	"roundhouse/worker/api"
	"roundhouse/worker/kv"
	"roundhouse/worker/workertest"
)

// TestNothingLeaks sends requests of which one in twenty leaves early, and
// wants every block back.
func TestNothingLeaks(t *testing.T) {
	e, _ := start(t, setup{blocks: 60, blockTokens: 4, maxLen: 200})
	rng := rand.New(rand.NewPCG(7, 7))
	var wg sync.WaitGroup
	for i := range 400 {
		p := params(1 + rng.IntN(40))
		p.N = 1 + rng.IntN(3)
		s, err := e.Submit(worker.Request{Tokens: prompt(1+rng.IntN(100), i%5), Params: p, Priority: rng.IntN(2)})
		if err != nil {
			t.Fatal(err)
		}
		leaves := i%20 == 0
		wg.Go(func() {
			if leaves {
				_, _ = s.Next(context.Background())
				s.Close()
				return
			}
			if a := collect(s, p.N); a.err != nil {
				t.Error(a.err)
			}
		})
	}
	wg.Wait()
	if !e.WaitIdle(context.Background()) || !e.ResetPrefixCache(context.Background()) {
		t.Fatal("blocks are held although no request is left")
	}
	st, n := e.Stats(), int64(0)
	for _, v := range st.Finished {
		n += v
	}
	if st.Usage != 0 || st.Running+st.Waiting != 0 || n < 400 {
		t.Fatalf("%d choices ended; running %d, waiting %d, usage %v", n, st.Running, st.Waiting, st.Usage)
	}
}

// TestBackendFails holds that every request ends when the backend does, and
// that the engine says so.
func TestBackendFails(t *testing.T) {
	m := workertest.New(vocab, []kv.Group{{Blocks: 100, BlockTokens: 4}})
	e := worker.NewEngine(worker.Config{
		Exec: m, Groups: m.Groups, Limits: worker.Limits{Tokens: 64, Seqs: 8, Rows: 8}, MaxModelLen: 100, Vocab: vocab,
	})
	ran := make(chan error, 1)
	go func() { ran <- e.Run(context.Background()) }()
	release := m.Hold()
	var streams []*worker.Stream
	for i := range 20 {
		s, err := e.Submit(worker.Request{Tokens: prompt(5, i), Params: params(9)})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	lost := errors.New("device lost")
	m.Fail(lost)
	release()
	for _, s := range streams {
		if a := collect(s, 1); !errors.Is(a.err, lost) || a.why[0] != worker.FinishError {
			t.Fatalf("got %v, %v; want the backend's error", a.why, a.err)
		}
	}
	if err := <-ran; !errors.Is(err, lost) || !errors.Is(e.Failed(), lost) {
		t.Fatalf("run ended with %v, the engine says %v", err, e.Failed())
	}
	if _, err := e.Submit(worker.Request{Tokens: prompt(5, 1), Params: params(9)}); err == nil {
		t.Fatal("a request was taken in after the end")
	}
}

// faulty fails the steps in which a sequence begins with a token.
type faulty struct {
	*workertest.Model
	token int32
	all   bool // the error concerns all of the step
	nan   bool // there is nothing to choose from, and no error
}

func (f faulty) Run(step *kernels.Step, out *kernels.Result) error {
	at := slices.IndexFunc(step.Seqs, func(s kernels.Seq) bool { return step.Tokens[s.First] == f.token && s.Context == s.Count })
	switch {
	case at >= 0 && f.all:
		return &kernels.StepError{Seq: -1, Err: errors.New("a kernel failed")}
	case at >= 0 && !f.nan:
		return &kernels.StepError{Seq: at, Err: errors.New("a mask of 3 words")}
	}
	err := f.Model.Run(step, out)
	for i, row := range step.Rows {
		if err == nil && step.Tokens[row] == f.token && step.Positions[row] == 0 {
			out.Sampled[i].Token = -1
		}
	}
	return err
}

// TestStepFails holds that a step which fails for one sequence ends that one, one
// that fails whole ends the sequences in it, and the engine goes on: others get
// the tokens that they get without it.
func TestStepFails(t *testing.T) {
	const bad = 60
	reqs := requests(12)
	want := alone(t, setup{}, reqs)
	f := func(name string, fails faulty) {
		t.Run(name, func(t *testing.T) {
			m := workertest.New(vocab, []kv.Group{{Blocks: 1024, BlockTokens: 4}})
			fails.Model, fails.token = m, bad
			e := worker.NewEngine(worker.Config{Exec: fails, Groups: m.Groups, PrefixCache: true, Limits: worker.Limits{Tokens: 256, Seqs: 64, Rows: 256}, MaxModelLen: 512, Vocab: vocab})
			ctx, cancel := context.WithCancel(context.Background())
			ran := make(chan error, 1)
			go func() { ran <- e.Run(ctx) }()
			var wg sync.WaitGroup
			for i, r := range reqs {
				wg.Go(func() {
					a := ask(t, e, r)
					if fails.all && a.err != nil { // it was in the step that failed
						return
					}
					if fmt.Sprint(a.tokens) != fmt.Sprint(want[i].tokens) {
						t.Errorf("request %d: got %v %v; want %v", i, a.tokens, a.err, want[i].tokens)
					}
				})
				wg.Go(func() {
					a := ask(t, e, worker.Request{Tokens: []int32{bad}, Params: params(4)})
					var failed *kernels.StepError
					if a.why[0] != worker.FinishError || !errors.As(a.err, &failed) {
						t.Errorf("a request that fails: got %v %v", a.why, a.err)
					}
				})
			}
			wg.Wait()
			if a := ask(t, e, reqs[0]); fmt.Sprint(a.tokens) != fmt.Sprint(want[0].tokens) {
				t.Errorf("after all: got %v %v; want %v", a.tokens, a.err, want[0].tokens)
			}
			cancel()
			if err := <-ran; err != nil {
				t.Fatalf("the engine ended: %v", err)
			}
			if st := e.Stats(); st.Usage != 0 {
				t.Fatalf("usage is %v at the end", st.Usage)
			}
		})
	}
	f("one sequence", faulty{})
	f("the whole step", faulty{all: true})
	f("no numbers", faulty{nan: true})
}

// TestTextFails holds the same of models that embed.
func TestTextFails(t *testing.T) {
	for _, all := range []bool{false, true} {
		m := workertest.New(vocab, []kv.Group{{Blocks: 1024, BlockTokens: 4}})
		m.Width = 3
		e := worker.NewEngine(worker.Config{Exec: faulty{Model: m, token: 60, all: all}, Groups: m.Groups, Limits: worker.Limits{Tokens: 256, Seqs: 64, Rows: 256}, MaxModelLen: 200, Vocab: vocab})
		ctx, cancel := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- e.Run(ctx) }()
		good, bad := worker.Text{Tokens: prompt(9, 1)}, worker.Text{Tokens: []int32{60, 1}}
		want, err := e.Pool(ctx, []worker.Text{good})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				got, err := e.Pool(ctx, []worker.Text{good})
				if !(all && err != nil) && fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("got %v %v; want %v", got, err, want)
				}
			})
			wg.Go(func() {
				var failed *kernels.StepError
				if _, err := e.Pool(ctx, []worker.Text{good, bad}); !errors.As(err, &failed) {
					t.Errorf("got error %v", err)
				}
			})
		}
		wg.Wait()
		if got, err := e.Pool(ctx, []worker.Text{good}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after all: got %v %v; want %v", got, err, want)
		}
		cancel()
		if err := <-ran; err != nil {
			t.Fatalf("the engine ended: %v", err)
		}
	}
}

// TestDrain holds that a draining engine finishes what it has and takes
// nothing new.
func TestDrain(t *testing.T) {
	e, m := start(t, setup{})
	release := m.Hold()
	s, err := e.Submit(worker.Request{Tokens: prompt(5, 1), Params: params(30)})
	if err != nil {
		t.Fatal(err)
	}
	e.Drain()
	if _, err := e.Submit(worker.Request{Tokens: prompt(5, 1), Params: params(9)}); !errors.Is(err, worker.ErrClosed) {
		t.Fatalf("got %v; want %v", err, worker.ErrClosed)
	}
	release()
	if a := collect(s, 1); a.err != nil || len(a.tokens[0]) != 30 {
		t.Fatalf("%d tokens, %v", len(a.tokens[0]), a.err)
	}
	if !e.WaitIdle(context.Background()) {
		t.Fatal("not idle")
	}
}

// guide allows only tokens below most, and breaks when told to.
type guide struct {
	most, left int32
	breaks     bool
}

func (g *guide) Mask(remaining int) []uint32 {
	if g.breaks && g.left < 3 {
		panic("a hole in the grammar")
	}
	return []uint32{1<<g.most - 1, 0}
}
func (g *guide) Accept(token int32) bool { g.left--; return token < g.most }
func (g *guide) Done() bool              { return g.left == 0 }

func TestGuides(t *testing.T) {
	e, _ := start(t, setup{})
	ok := worker.Request{Tokens: prompt(5, 1), Params: params(30), Guides: []worker.Guide{&guide{most: 6, left: 9}}}
	broken := worker.Request{Tokens: prompt(5, 1), Params: params(30), Guides: []worker.Guide{&guide{most: 6, left: 9, breaks: true}}}
	free := worker.Request{Tokens: prompt(5, 1), Params: params(30)}
	var wg sync.WaitGroup
	wg.Go(func() {
		if a := ask(t, e, broken); a.why[0] != worker.FinishError || a.err == nil || !strings.Contains(a.err.Error(), "a hole in the grammar") {
			t.Errorf("broken: %v %v", a.why, a.err)
		}
	})
	wg.Go(func() {
		a := ask(t, e, ok)
		if a.err != nil || len(a.tokens[0]) != 9 || slices.Max(a.tokens[0]) >= 6 || a.why[0] != worker.FinishStop {
			t.Errorf("guided: %v %v %v", a.tokens, a.why, a.err)
		}
	})
	wg.Go(func() {
		if a := ask(t, e, free); a.err != nil || len(a.tokens[0]) != 30 {
			t.Errorf("beside it: %v %v", a.tokens, a.err)
		}
	})
	wg.Wait()
}

// TestSamplingRules holds what each parameter promises.
func TestSamplingRules(t *testing.T) {
	e, _ := start(t, setup{eos: []int32{5}})
	f := func(name string, change func(*worker.Params), holds func(answer) bool) {
		t.Helper()
		p := params(40)
		p.Temperature, p.Seed, p.IgnoreEOS = 1, 3, true
		change(&p)
		if a := ask(t, e, worker.Request{Tokens: prompt(9, 2), Params: p}); a.err != nil || !holds(a) {
			t.Errorf("%s: %v %v %v", name, a.tokens, a.why, a.err)
		}
	}
	none := func(id int32) func(answer) bool {
		return func(a answer) bool { return !slices.Contains(a.tokens[0], id) && len(a.tokens[0]) == 40 }
	}
	plain := ask(t, e, worker.Request{Tokens: prompt(9, 2), Params: func() worker.Params {
		p := params(40)
		p.Temperature, p.Seed, p.IgnoreEOS = 1, 3, true
		return p
	}()}).tokens[0]
	f("the same seed", func(*worker.Params) {}, func(a answer) bool { return slices.Equal(a.tokens[0], plain) })
	f("another seed", func(p *worker.Params) { p.Seed = 4 }, func(a answer) bool { return !slices.Equal(a.tokens[0], plain) })
	f("bias away", func(p *worker.Params) { p.Bias = map[int32]float32{plain[0]: -100} }, none(plain[0]))
	f("bias to", func(p *worker.Params) { p.Bias = map[int32]float32{7: 100} }, func(a answer) bool { return slices.Equal(a.tokens[0], slices.Repeat([]int32{7}, 40)) })
	f("allowed", func(p *worker.Params) { p.Allowed = []int32{3, 9} }, func(a answer) bool {
		return !slices.ContainsFunc(a.tokens[0], func(id int32) bool { return id != 3 && id != 9 })
	})
	f("bad word", func(p *worker.Params) { p.BadWords = [][]int32{{plain[0]}} }, none(plain[0]))
	f("bad words", func(p *worker.Params) { p.BadWords = [][]int32{{plain[0], plain[1]}} }, func(a answer) bool {
		return a.tokens[0][0] == plain[0] && a.tokens[0][1] != plain[1]
	})
	f("penalty", func(p *worker.Params) { p.Frequency = 100 }, func(a answer) bool {
		sorted := slices.Sorted(slices.Values(a.tokens[0]))
		return len(slices.Compact(sorted)) == 40
	})
	f("stop id", func(p *worker.Params) { p.StopIDs = []int32{plain[7]} }, func(a answer) bool {
		return slices.Equal(a.tokens[0], plain[:slices.Index(plain, plain[7])+1]) && a.why[0] == worker.FinishStop
	})
	f("least tokens", func(p *worker.Params) { p.IgnoreEOS, p.MinTokens, p.Bias = false, 6, map[int32]float32{5: 100} }, func(a answer) bool {
		return len(a.tokens[0]) == 7 && slices.Index(a.tokens[0], 5) == 6 && a.why[0] == worker.FinishStop
	})
	f("length", func(p *worker.Params) { p.MaxTokens = 3 }, func(a answer) bool {
		return slices.Equal(a.tokens[0], plain[:3]) && a.why[0] == worker.FinishLength
	})
}

// TestPrefixCacheSavesWork holds that the second request with a long shared
// beginning computes a small part of it.
func TestPrefixCacheSavesWork(t *testing.T) {
	e, m := start(t, setup{maxLen: 3000, limits: worker.Limits{Tokens: 256, Seqs: 8, Rows: 8}})
	shared := prompt(2000, 3)
	cost := func(last int32) int {
		before := 0
		for _, s := range m.Steps() {
			before -= s.Tokens
		}
		if a := ask(t, e, worker.Request{Tokens: append(slices.Clone(shared), last), Params: params(1)}); a.err != nil {
			t.Fatal(a.err)
		}
		for _, s := range m.Steps() {
			before += s.Tokens
		}
		return before
	}
	first, second := cost(1), cost(2)
	if first != 2001 || second > 8 {
		t.Fatalf("the first request computes %d tokens, the second %d", first, second)
	}
	if st := e.Stats(); st.PrefixHits != 2000 || st.PrefixQueries != 4002 || st.CachedPromptTokens != 2000 {
		t.Fatalf("hits %d of %d, cached %d", st.PrefixHits, st.PrefixQueries, st.CachedPromptTokens)
	}
}

// TestDoorReport holds what a door learns of its own requests: which have
// come, what they hold, and which of its prompts are cached no more.
func TestDoorReport(t *testing.T) {
	e, m := start(t, setup{blocks: 50, blockTokens: 4, maxLen: 200})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reports := make(chan api.Status)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = e.Watch(ctx, func(s api.Status) error {
			select {
			case reports <- s:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	until := func(holds func(api.DoorStatus) bool) {
		t.Helper()
		for s := range reports {
			if holds(s.Doors["d"]) {
				return
			}
		}
	}
	release := m.Hold()
	for _, seq := range []uint64{1, 2, 4} {
		e.Arrived("d", seq)
	}
	s, err := e.Submit(worker.Request{Tokens: prompt(40, 1), Params: params(2), Door: "d", Chunks: []string{"00000000000000aa", "00000000000000bb"}})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if a := collect(s, 1); a.err != nil {
		t.Fatal(a.err)
	}
	until(func(d api.DoorStatus) bool {
		return d.Through == 2 && slices.Equal(d.Beyond, []uint64{4}) && d.ResidentTokens == 0
	})
	e.Arrived("d", 3)
	until(func(d api.DoorStatus) bool { return d.Through == 4 && len(d.Beyond) == 0 })
	go func() {
		ask(t, e, worker.Request{Tokens: prompt(190, 4), Params: params(2), Door: "d"})
	}()
	var gone []string
	until(func(d api.DoorStatus) bool {
		gone = append(gone, d.Evicted...)
		return len(gone) == 2
	})
	slices.Sort(gone)
	if !slices.Equal(gone, []string{"00000000000000aa", "00000000000000bb"}) {
		t.Fatalf("evicted %v", gone)
	}
	e.WaitIdle(ctx)
	cancel()
	<-watched
}
