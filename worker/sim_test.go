package worker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"roundhouse/worker/kv"
)

// shadow is a naive picture of the pages: which tokens each block holds.
type shadow struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	groups []kv.Group
	pool   *kv.Cache
	sched  *Scheduler
	limits Limits
	pages  []map[[2]int32]uint64 // (groups)(block, offset) → hash of all tokens up to there
	live   map[*Sequence]int     // output tokens still to come
	done   int
}

func newShadow(t *testing.T, seed uint64, groups []kv.Group, limits Limits, cache bool) *shadow {
	s := &shadow{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), groups: groups, limits: limits, live: map[*Sequence]int{}}
	s.pool = kv.New(kv.Options{Groups: groups, PrefixCache: cache, Key: kv.Key{byte(seed)}})
	s.sched = NewScheduler(s.pool, limits)
	for range groups {
		s.pages = append(s.pages, map[[2]int32]uint64{})
	}
	return s
}

func (s *shadow) fatal(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

// arrive adds a request of one to three choices.
func (s *shadow) arrive(longest int) {
	n := 1 + s.rng.IntN(longest)
	tokens := make([]int32, n)
	shared := s.rng.IntN(4) // few beginnings, so that prompts share them
	for i := range tokens {
		tokens[i] = int32(shared)
		if i > n/2 {
			tokens[i] = int32(s.rng.IntN(50))
		}
	}
	var first *Sequence
	for range 1 + s.rng.IntN(3)/2*2 {
		q := &Sequence{Prompt: n, Tokens: append([]int32{}, tokens...), Priority: s.rng.IntN(3), Parent: first, NoLookup: s.rng.IntN(9) == 0}
		q.Table.Salt = []string{"", "salt"}[s.rng.IntN(2)]
		if first != nil {
			q.Table.Salt = first.Table.Salt
			q.NoLookup = first.NoLookup
		}
		s.live[q] = 1 + s.rng.IntN(longest/2)
		s.sched.Add(q)
		if first == nil {
			first = q
		}
	}
}

// step plans, computes and commits one step, and checks all that must hold.
func (s *shadow) step() {
	plan := s.sched.Schedule()
	tokens, rows := 0, 0
	for _, e := range plan.Entries {
		tokens += e.Count
		rows++
		s.compute(e)
	}
	if tokens > s.limits.Tokens || len(plan.Entries) > s.limits.Seqs || rows > s.limits.Rows {
		s.fatal("a step of %d tokens, %d sequences, %d rows", tokens, len(plan.Entries), rows)
	}
	if len(plan.Entries) == 0 && len(s.live) > 0 {
		s.fatal("%d sequences and none can run", len(s.live))
	}
	for _, e := range plan.Entries {
		q := e.Seq
		if !e.Samples {
			s.sched.Commit(e, e.Start+e.Count)
			continue
		}
		q.Tokens = append(q.Tokens, int32(s.rng.IntN(50)))
		s.sched.Commit(e, len(q.Tokens)-1)
		if s.live[q]--; s.live[q] == 0 {
			s.end(q)
		}
	}
	s.check()
}

func (s *shadow) end(q *Sequence) {
	s.sched.Remove(q)
	delete(s.live, q)
	s.done++
}

// compute writes an entry's tokens to its pages and reads what it attends to.
func (s *shadow) compute(e Entry) {
	q := e.Seq
	if e.Start != q.Computed || e.Count < 1 || e.Start+e.Count > len(q.Tokens) {
		s.fatal("an entry of %d tokens from %d on; %d of %d are computed", e.Count, e.Start, q.Computed, len(q.Tokens))
	}
	if e.Samples != (e.Start+e.Count == len(q.Tokens)) {
		s.fatal("an entry that samples before its sequence's end, or not at it")
	}
	for g, group := range s.groups {
		if group.State {
			continue
		}
		chain := uint64(len(q.Table.Salt)) + 1
		for p, token := range q.Tokens[:e.Start+e.Count] {
			chain = chain*0x9E3779B97F4A7C15 + uint64(token) + 1
			id := q.Table.Groups[g][p/group.BlockTokens]
			at := [2]int32{id, int32(p % group.BlockTokens)}
			seen := group.Window == 0 || p > e.Start-group.Window
			switch {
			case p >= e.Start:
				if holders := s.holders(g, id); id < 0 || holders != 1 {
					s.fatal("group %d: block %d is written and has %d holders", g, id, holders)
				}
				s.pages[g][at] = chain
			case seen && (id < 0 || s.pages[g][at] != chain):
				s.fatal("group %d: position %d of block %d does not hold what the sequence wrote", g, p, id)
			}
		}
	}
}

func (s *shadow) holders(g int, id int32) int {
	n := 0
	for q := range s.live {
		if g < len(q.Table.Groups) {
			for _, b := range q.Table.Groups[g] {
				if b == id {
					n++
				}
			}
		}
	}
	return n
}

func (s *shadow) check() {
	var tables []*kv.Table
	for q := range s.live {
		tables = append(tables, &q.Table)
	}
	if err := s.pool.Check(tables); err != nil {
		s.fatal("%v", err)
	}
}

// TestSimulation sends random traffic through scheduler and KV cache and compares
// every step with the naive picture.
func TestSimulation(t *testing.T) {
	full := func(blocks int) []kv.Group { return []kv.Group{{Blocks: blocks, BlockTokens: 4}} }
	for name, c := range map[string]struct {
		groups []kv.Group
		limits Limits
		cache  bool
	}{
		"roomy":      {full(600), Limits{Tokens: 64, Seqs: 16, Rows: 16}, true},
		"tight":      {full(26), Limits{Tokens: 32, Seqs: 8, Rows: 8}, true},
		"no cache":   {full(26), Limits{Tokens: 32, Seqs: 8, Rows: 8}, false},
		"one token":  {full(40), Limits{Tokens: 4, Seqs: 4, Rows: 4}, true},
		"window":     {[]kv.Group{{Blocks: 40, BlockTokens: 4}, {Blocks: 40, BlockTokens: 4, Window: 6}}, Limits{Tokens: 24, Seqs: 6, Rows: 6}, true},
		"state":      {[]kv.Group{{Blocks: 40, BlockTokens: 4}, {Blocks: 6, State: true}}, Limits{Tokens: 24, Seqs: 6, Rows: 6}, true},
		"two window": {[]kv.Group{{Blocks: 60, BlockTokens: 4, Window: 9}, {Blocks: 60, BlockTokens: 4, Window: 5}, {Blocks: 30, BlockTokens: 4}}, Limits{Tokens: 24, Seqs: 6, Rows: 6}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				s := newShadow(t, seed, c.groups, c.limits, c.cache)
				for i := range 300 {
					if s.rng.IntN(3) == 0 {
						s.arrive(60)
					}
					if s.rng.IntN(12) == 0 {
						for q := range s.live { // any one: aborted in the middle
							s.end(q)
							break
						}
					}
					if s.step(); i%50 == 0 {
						s.pool.Reset()
					}
				}
				for steps := 0; len(s.live) > 0; steps++ {
					if s.step(); steps > 20000 {
						s.fatal("%d sequences do not end", len(s.live))
					}
				}
				if used := s.pool.UsedTokens(); used != 0 || s.done == 0 {
					t.Fatalf("seed %d: %d tokens are held by nobody after %d sequences", seed, used, s.done)
				}
				if !s.pool.Reset() {
					t.Fatalf("seed %d: the pool is idle and cannot be reset", seed)
				}
			}
		})
	}
}

func run1(t *testing.T, s *Scheduler, want int) Entry {
	t.Helper()
	plan := s.Schedule()
	if len(plan.Entries) != 1 || plan.Entries[0].Count != want {
		t.Fatalf("got %+v; want one entry of %d tokens", plan.Entries, want)
	}
	return plan.Entries[0]
}

func tokensFrom(n, from int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(from + i)
	}
	return out
}

// The four are bugs that nano-vllm had, by name.

func TestPositionOffByOne(t *testing.T) {
	s := NewScheduler(kv.New(kv.Options{Groups: []kv.Group{{Blocks: 9, BlockTokens: 4}}, PrefixCache: true}), Limits{Tokens: 64, Seqs: 4, Rows: 4})
	q := &Sequence{Prompt: 8, Tokens: tokensFrom(8, 0)}
	s.Add(q)
	e := run1(t, s, 8)
	for n := 8; n < 20; n++ { // over two block boundaries
		q.Tokens = append(q.Tokens, 7)
		s.Commit(e, n)
		if e = run1(t, s, 1); e.Start != n || len(q.Table.Groups[0]) != n/4+1 {
			t.Fatalf("token %d is computed at position %d with %d blocks", n, e.Start, len(q.Table.Groups[0]))
		}
	}
}

func TestOverScheduledAfterPrefixHit(t *testing.T) {
	s := NewScheduler(kv.New(kv.Options{Groups: []kv.Group{{Blocks: 20, BlockTokens: 4}}, PrefixCache: true}), Limits{Tokens: 6, Seqs: 4, Rows: 4})
	a := &Sequence{Prompt: 6, Tokens: tokensFrom(6, 0)}
	s.Add(a)
	e := run1(t, s, 6)
	a.Tokens = append(a.Tokens, 1)
	s.Commit(e, 6)
	s.Remove(a)
	b := &Sequence{Prompt: 9, Tokens: append(tokensFrom(6, 0), 50, 51, 52)}
	s.Add(b)
	// Four of nine are in the cache: five are computed, all within one step of six.
	if e = run1(t, s, 5); e.Start != 4 || !e.Samples {
		t.Fatalf("got %+v; want positions 4 to 8", e)
	}
}

func TestAttentionOverUnwrittenChunk(t *testing.T) {
	s := NewScheduler(kv.New(kv.Options{Groups: []kv.Group{{Blocks: 40, BlockTokens: 4}}, PrefixCache: true}), Limits{Tokens: 8, Seqs: 4, Rows: 4})
	a := &Sequence{Prompt: 30, Tokens: tokensFrom(30, 0)}
	s.Add(a)
	e := run1(t, s, 8)
	b := &Sequence{Prompt: 20, Tokens: tokensFrom(20, 0)}
	s.Add(b)
	s.Commit(e, 8)
	// Eight tokens of a are written. b may use those and no more, although a
	// has blocks for all thirty.
	for _, e := range s.Schedule().Entries {
		if e.Seq == b && e.Start > 8 {
			t.Fatalf("b begins at %d; only 8 tokens of its prefix were written", e.Start)
		}
	}
	if b.Cached != 8 {
		t.Fatalf("b found %d tokens in the cache; want 8", b.Cached)
	}
}

func TestCacheHitErasesHash(t *testing.T) {
	s := NewScheduler(kv.New(kv.Options{Groups: []kv.Group{{Blocks: 20, BlockTokens: 4}}, PrefixCache: true}), Limits{Tokens: 64, Seqs: 4, Rows: 4})
	for i := range 4 {
		q := &Sequence{Prompt: 10, Tokens: tokensFrom(10, 0)}
		s.Add(q)
		e := s.Schedule().Entries[0]
		if want := min(i, 1) * 8; q.Cached != want {
			t.Fatalf("time %d: %d tokens found in the cache; want %d", i, q.Cached, want)
		}
		q.Tokens = append(q.Tokens, 1)
		s.Commit(e, 10)
		s.Remove(q)
	}
}

// TestShortBehindLong holds the promise that a short request behind a long
// prefill gets its first token within two steps of its own length.
func TestShortBehindLong(t *testing.T) {
	s := NewScheduler(kv.New(kv.Options{Groups: []kv.Group{{Blocks: 2000, BlockTokens: 4}}, PrefixCache: true}), Limits{Tokens: 256, Seqs: 8, Rows: 8})
	long := &Sequence{Prompt: 4000, Tokens: tokensFrom(4000, 0)}
	s.Add(long)
	e := run1(t, s, 256)
	s.Commit(e, 256)
	short := &Sequence{Prompt: 20, Tokens: tokensFrom(20, 9000)}
	s.Add(short)
	for step := 1; ; step++ {
		if step > 2 {
			t.Fatal("the short request has no token after two steps")
		}
		plan := s.Schedule()
		for _, e := range plan.Entries {
			if e.Seq == short && e.Samples {
				return
			}
			s.Commit(e, e.Start+e.Count)
		}
	}
}

// TestLongIsNotStarved holds that a long prompt ends although short ones keep
// coming that could fill every step.
func TestLongIsNotStarved(t *testing.T) {
	s := NewScheduler(kv.New(kv.Options{Groups: []kv.Group{{Blocks: 2000, BlockTokens: 4}}}), Limits{Tokens: 64, Seqs: 16, Rows: 16})
	long := &Sequence{Prompt: 1000, Tokens: tokensFrom(1000, 0)}
	s.Add(long)
	for step := 1; long.Computed < 1000; step++ {
		if step > 400 {
			t.Fatalf("after %d steps %d of 1000 tokens are computed", step, long.Computed)
		}
		for range 2 {
			s.Add(&Sequence{Prompt: 40, Tokens: tokensFrom(40, step*50)})
		}
		for _, e := range s.Schedule().Entries {
			s.Commit(e, e.Start+e.Count)
			if e.Samples && e.Seq != long {
				s.Remove(e.Seq)
			}
		}
	}
}

// TestArrival holds fcfs: prompts are computed one behind the other as they
// came, whatever their length and priority, and who came last gives way.
func TestArrival(t *testing.T) {
	s := NewScheduler(kv.New(kv.Options{Groups: []kv.Group{{Blocks: 40, BlockTokens: 4}}}), Limits{Tokens: 64, Seqs: 8, Rows: 8, Arrival: true})
	long := &Sequence{Prompt: 120, Tokens: tokensFrom(120, 0)}
	short := &Sequence{Prompt: 8, Tokens: tokensFrom(8, 9000), Priority: -5}
	wide := &Sequence{Prompt: 60, Tokens: tokensFrom(60, 500), Priority: -9} // has no room beside long
	last := &Sequence{Prompt: 4, Tokens: tokensFrom(4, 700), Priority: -9}
	for _, q := range []*Sequence{long, short, wide, last} {
		s.Add(q)
	}
	plan := s.Schedule()
	if len(plan.Entries) != 1 || plan.Entries[0].Seq != long || plan.Entries[0].Count != 64 {
		t.Fatalf("the first step is %+v; want 64 tokens of the first", plan.Entries)
	}
	s.Commit(plan.Entries[0], 64)
	plan = s.Schedule()
	if len(plan.Entries) != 2 || plan.Entries[0].Seq != long || plan.Entries[0].Count != 56 || plan.Entries[1].Seq != short {
		t.Fatalf("the second step is %+v; want the rest of the first, and the second", plan.Entries)
	}
	if last.state != seqWaiting {
		t.Error("the last one has overtaken one that lacks room")
	}
	if v := s.victim(&Plan{}); v != short {
		t.Errorf("%+v gives way; want the one that came last", v)
	}
}
