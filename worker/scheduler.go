package worker

import (
	"cmp"
	"slices"

	"roundhouse/worker/kv"
)

// Limits bound what one step may hold.
type Limits struct {
	Tokens  int // rows of a step
	Seqs    int // sequences that run at once
	Rows    int // rows whose logits are wanted
	Prefill int // of one prompt's tokens in a step; 0: no bound of its own
	Begins  int // sequences whose first token is in a step; 0: no bound of its own

	// Arrival has prompts computed in the order of their arrival, whatever
	// their length and priority: vLLM's fcfs.
	Arrival bool
}

// Scheduler decides what the next step computes. It knows no phases: of every
// sequence the computed tokens chase the tokens that are there, under one
// budget. Sequences that lack one token go first, then the others, running
// and waiting alike, the shortest remainder first; the longer one has waited,
// here or at its door, the shorter it counts. While others wait, one takes at
// most half the budget.
//
// It is pure: no goroutine, lock, clock or I/O.
type Scheduler struct {
	cache   *kv.Cache
	limits  Limits
	running []*Sequence // in the order in which they started
	waiting []*Sequence // in the order of arrival, preempted ones first
	step    uint64
	order   uint64

	preemptions int64
	candidates  []*Sequence // reused
}

// Plan is one step.
type Plan struct {
	Entries   []Entry
	Preempted []*Sequence
}

// Entry is one sequence's part of a step: its tokens [Start, Start+Count),
// of which the last Drafts are guesses. Samples says that the entry reaches
// the end of the sequence, so that the next token can be chosen.
type Entry struct {
	Seq     *Sequence
	Start   int
	Count   int
	Drafts  int
	Samples bool
}

// NewScheduler makes a scheduler over the blocks of cache.
func NewScheduler(pool *kv.Cache, limits Limits) *Scheduler {
	if limits.Seqs < 1 || limits.Tokens < limits.Seqs || limits.Rows < limits.Seqs {
		panic("BUG: a step has no room for one token of every running sequence")
	}
	return &Scheduler{cache: pool, limits: limits}
}

// Add takes a sequence in.
func (s *Scheduler) Add(q *Sequence) {
	s.order++
	q.order, q.arrived, q.state, q.Cached = s.order, s.step-min(q.waited, s.step), seqWaiting, -1
	s.waiting = append(s.waiting, q)
}

// Remove forgets a sequence, finished or not, and frees its blocks.
func (s *Scheduler) Remove(q *Sequence) {
	switch q.state {
	case seqRunning:
		s.cache.Release(&q.Table)
		s.running = remove(s.running, q)
	case seqWaiting:
		s.waiting = remove(s.waiting, q)
	}
	q.state = seqGone
}

func remove(list []*Sequence, q *Sequence) []*Sequence {
	i := slices.Index(list, q)
	if i < 0 {
		panic("BUG: a sequence is not in the list that its state names")
	}
	return slices.Delete(list, i, i+1)
}

// Running and Waiting count the sequences.
func (s *Scheduler) Running() int { return len(s.running) }

// Waiting counts the sequences that hold no blocks.
func (s *Scheduler) Waiting() int { return len(s.waiting) }

// PrefillTokens counts the tokens still to compute before every sequence is
// down to its newest one.
func (s *Scheduler) PrefillTokens() int {
	n := 0
	for _, list := range [][]*Sequence{s.running, s.waiting} {
		for _, q := range list {
			if q.prefilling() {
				n += q.remaining()
			}
		}
	}
	return n
}

// Schedule plans the next step. An empty plan means that there is nothing to do.
func (s *Scheduler) Schedule() Plan {
	s.step++
	b := budget{tokens: s.limits.Tokens, rows: s.limits.Rows}
	var plan Plan
	s.decodes(&plan, &b)
	s.prefills(&plan, &b)
	return plan
}

// budget is what a step has left.
type budget struct{ tokens, rows int }

// decodes gives every running sequence that lacks one token its place. Who
// started last makes room when the cache is full.
func (s *Scheduler) decodes(plan *Plan, b *budget) {
	s.candidates = append(s.candidates[:0], s.running...)
	for i, q := range s.candidates {
		if q.state != seqRunning || q.prefilling() {
			continue
		}
		kept := len(s.candidates) - i // one token each for those that still come
		drafts := max(0, min(len(q.Drafts), b.tokens-kept, b.rows-kept))
		if drafts > 0 && !s.cache.Extend(&q.Table, q.Computed, len(q.Tokens)+drafts) {
			drafts = 0
		}
		if !s.makeRoom(plan, q, len(q.Tokens)) {
			continue // q itself gave way
		}
		plan.Entries = append(plan.Entries, Entry{Seq: q, Start: q.Computed, Count: 1 + drafts, Drafts: drafts, Samples: true})
		b.tokens -= 1 + drafts
		b.rows -= 1 + drafts
	}
}

// makeRoom preempts until q has room for upto tokens. It says false when q had
// to give way itself.
func (s *Scheduler) makeRoom(plan *Plan, q *Sequence, upto int) bool {
	for !s.cache.Extend(&q.Table, q.Computed, upto) {
		victim := s.victim(plan)
		if victim == nil {
			panic("BUG: the cache is full and nobody can make room")
		}
		s.preempt(plan, victim)
		if victim == q {
			return false
		}
	}
	return true
}

// victim is the running sequence that gives way: of the least urgent the one
// that arrived last, and nobody who has a place in this step already.
func (s *Scheduler) victim(plan *Plan) *Sequence {
	var worst *Sequence
	for _, q := range s.running {
		if placed(plan, q) {
			continue
		}
		if worst == nil || !s.limits.Arrival && q.Priority > worst.Priority || (s.limits.Arrival || q.Priority == worst.Priority) && q.order > worst.order {
			worst = q
		}
	}
	return worst
}

func placed(plan *Plan, q *Sequence) bool {
	return slices.ContainsFunc(plan.Entries, func(e Entry) bool { return e.Seq == q })
}

// preempt takes all blocks of a running sequence; it is computed again later.
func (s *Scheduler) preempt(plan *Plan, q *Sequence) {
	s.cache.Release(&q.Table)
	q.Computed, q.Drafts, q.state = 0, nil, seqWaiting
	s.running = remove(s.running, q)
	s.waiting = slices.Insert(s.waiting, 0, q)
	s.preemptions++
	plan.Preempted = append(plan.Preempted, q)
}

// Suspend sets all that runs back to its beginning, in its order.
func (s *Scheduler) Suspend() {
	var none Plan
	for len(s.running) > 0 {
		s.preempt(&none, s.running[len(s.running)-1])
	}
}

// prefills spends what is left of the budget. Nobody starts in a step that
// preempted, and nobody overtakes one who has waited long and lacks room.
func (s *Scheduler) prefills(plan *Plan, b *budget) {
	list := s.ordered(len(plan.Preempted) == 0)
	closed, begun := false, 0
	for i, q := range list {
		if b.tokens <= 0 || b.rows <= 0 {
			return
		}
		if q.Computed == 0 && s.limits.Begins > 0 && begun == s.limits.Begins {
			continue
		}
		if q.state == seqWaiting {
			if closed || len(plan.Preempted) > 0 || len(s.running) >= s.limits.Seqs || s.awaitsParent(q) {
				continue
			}
			if !s.admit(q) {
				closed = s.limits.Arrival || s.weight(q) <= 0
				continue
			}
		}
		if q.Computed == 0 {
			begun++
		}
		most := b.tokens
		if i < len(list)-1 && !s.limits.Arrival {
			most = min(most, max(1, s.limits.Tokens/2))
		}
		if s.limits.Prefill > 0 {
			most = min(most, s.limits.Prefill)
		}
		s.prefill(plan, b, q, min(q.remaining(), most))
	}
}

// prefill places count tokens of q, fewer if the rows of its prompt do not fit.
func (s *Scheduler) prefill(plan *Plan, b *budget, q *Sequence, count int) {
	rows := 1
	if q.PromptRows && q.Computed < q.Prompt {
		count = min(count, b.rows)
		rows = count
	}
	if !s.makeRoom(plan, q, q.Computed+count) {
		return
	}
	b.tokens -= count
	b.rows -= rows
	plan.Entries = append(plan.Entries, Entry{
		Seq: q, Start: q.Computed, Count: count, Samples: q.Computed+count == len(q.Tokens),
	})
}

// ordered lists who has more than one token to compute, by urgency.
func (s *Scheduler) ordered(andWaiting bool) []*Sequence {
	list := s.candidates[:0]
	for _, q := range s.running {
		if q.prefilling() {
			list = append(list, q)
		}
	}
	if andWaiting {
		list = append(list, s.waiting...)
	}
	slices.SortStableFunc(list, func(a, b *Sequence) int {
		if s.limits.Arrival {
			return cmp.Compare(a.order, b.order)
		}
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(s.weight(a), s.weight(b)), cmp.Compare(a.order, b.order))
	})
	s.candidates = list
	return list
}

// weight is the remainder of q, less what it has earned by waiting: a
// sixteenth of the budget a step, so that no stream of short prompts holds a
// long one off for good.
func (s *Scheduler) weight(q *Sequence) int {
	return q.remaining() - int(min(s.step-q.arrived, 1<<20))*max(1, s.limits.Tokens/16)
}

// admit gives a waiting sequence its first blocks: room for all of its
// tokens, so that no prefill stops half-way for want of it.
func (s *Scheduler) admit(q *Sequence) bool {
	hit, ok := 0, false
	if p := q.Parent; p != nil && p.state == seqRunning && len(q.Tokens) == q.Prompt && !q.NoLookup {
		hit, ok = s.cache.Fork(&q.Table, &p.Table, q.Prompt, len(q.Tokens))
	}
	if !ok {
		hit, ok = s.cache.Admit(&q.Table, q.Tokens, len(q.Tokens), !q.NoLookup)
	}
	if !ok {
		return false
	}
	q.Computed = hit
	if q.Cached < 0 {
		q.Cached = min(hit, q.Prompt)
	}
	q.state = seqRunning
	q.Parent = nil
	s.waiting = remove(s.waiting, q)
	s.running = append(s.running, q)
	return true
}

// awaitsParent says that the first choice of the same request is about to
// compute the prompt that q could share.
func (s *Scheduler) awaitsParent(q *Sequence) bool {
	p := q.Parent
	return p != nil && p.state != seqGone && p.Computed < p.Prompt
}

// Commit records that an entry has been computed, up to computed tokens of its
// sequence (fewer than planned when drafts were wrong).
func (s *Scheduler) Commit(e Entry, computed int) {
	q := e.Seq
	if q.state != seqRunning {
		panic("BUG: a step computed a sequence that does not run")
	}
	q.Computed = computed
	s.cache.Commit(&q.Table, q.Tokens, computed)
}
