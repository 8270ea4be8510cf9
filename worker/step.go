package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"roundhouse/kernels"
)

// rowRef says what a sampled row of the step stands for.
type rowRef struct {
	entry  int
	prompt int // the prompt position that the row foretells; -1: a new token
}

// forced is added to the logit of a prompt token so that the row "chooses" it
// and brings back its logit and rank.
const forced = 1e30

// runStep schedules, computes and commits one step. It says false when there
// was nothing to do.
func (e *Engine) runStep(ctx context.Context) (bool, error) {
	if e.suspended() {
		return false, nil
	}
	if len(e.pooling) > 0 {
		return e.poolStep()
	}
	looked, err := e.sight.look(e)
	if err != nil {
		return true, err
	}
	planned := time.Now()
	e.draft()
	plan := e.sched.Schedule()
	if len(plan.Entries) == 0 {
		if looked {
			return true, nil
		}
		if e.sched.Running()+e.sched.Waiting() > 0 {
			panic("BUG: there are sequences and none of them can run")
		}
		return false, nil
	}
	e.pace(ctx)
	began := time.Now()
	e.past.note(e.sched.step, began)
	e.build(plan)
	if err := e.cfg.Exec.Run(&e.step, &e.result); err != nil {
		return true, e.failStep(plan, err)
	}
	if len(e.result.Sampled) != len(e.rows) {
		panic(fmt.Sprintf("BUG: %d rows were asked for, %d came back", len(e.rows), len(e.result.Sampled)))
	}
	e.timings = stepTimes{began: began, ended: time.Now()}
	e.stats.step(plan)
	e.commit(plan)
	e.doors.evict(e.cache.TakeEvicted())
	if e.watch != nil {
		e.watched(planned, plan, 0, 0)
	}
	return true, nil
}

// pace holds the step back until the one before lies long enough behind.
func (e *Engine) pace(ctx context.Context) {
	if e.cfg.Pace <= 0 {
		return
	}
	if wait := time.Until(e.last.Add(e.cfg.Pace)); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	e.last = time.Now()
}

// build fills the kernels' step from the plan.
func (e *Engine) build(plan Plan) {
	s := &e.step
	s.Tokens, s.Positions, s.Seqs = s.Tokens[:0], s.Positions[:0], s.Seqs[:0]
	s.Rows, s.Sampling, e.rows = s.Rows[:0], s.Sampling[:0], e.rows[:0]
	s.Axes, s.Media, s.MediaRow, s.Features = nil, s.Media[:0], nil, s.Features[:0]
	sees := slices.ContainsFunc(plan.Entries, func(en Entry) bool { return en.Seq.places != nil })
	for i, en := range plan.Entries {
		first := len(s.Tokens)
		for p := en.Start; p < en.Start+en.Count; p++ {
			if p < len(en.Seq.Tokens) {
				s.Tokens = append(s.Tokens, en.Seq.Tokens[p])
			} else {
				s.Tokens = append(s.Tokens, en.Seq.Drafts[p-len(en.Seq.Tokens)])
			}
			place := en.Seq.placeOf(p)
			s.Positions = append(s.Positions, place[0])
			if sees {
				s.Axes, s.MediaRow = append(s.Axes, place[:]...), append(s.MediaRow, -1)
			}
		}
		if en.Seq.places != nil {
			e.sight.media(s, en.Seq, en.Start, en.Count)
		}
		s.Seqs = append(s.Seqs, kernels.Seq{
			First: int32(first), Count: int32(en.Count), Context: int32(en.Start + en.Count), Blocks: en.Seq.Table.Groups, Adapter: en.Seq.adapter,
		})
		if en.Start == 0 {
			e.sight.frames(s, en.Seq)
		}
		e.buildRows(i, en, first)
	}
}

// buildRows asks for the rows of one entry: those that foretell its prompt,
// if it wants them, and those that choose new tokens.
func (e *Engine) buildRows(i int, en Entry, first int) {
	s, q := &e.step, en.Seq
	if q.PromptRows {
		for p := max(en.Start, q.rows); p < en.Start+en.Count && p+1 < q.Prompt; p++ {
			s.Rows = append(s.Rows, int32(first+p-en.Start))
			s.Sampling = append(s.Sampling, kernels.Sampling{
				TopP: 1, Top: int32(q.request.Params.PromptLogprobs),
				Edits: []kernels.Edit{{Token: q.Tokens[p+1], Repetition: 1, Add: forced}},
			})
			e.rows = append(e.rows, rowRef{entry: i, prompt: p + 1})
		}
	}
	if !en.Samples {
		return
	}
	out := q.Output()
	for d := 0; d <= en.Drafts; d++ {
		left := min(q.rules.params.MaxTokens-len(out), e.cfg.MaxModelLen-len(q.Tokens))
		s.Rows = append(s.Rows, int32(first+en.Count-1-en.Drafts+d))
		s.Sampling = append(s.Sampling, e.sampling(q, out, len(out)+d, left))
		e.rows = append(e.rows, rowRef{entry: i, prompt: -1})
	}
}

// sampling asks the sequence's rules; a panic in its guide ends its request
// and nothing else.
func (e *Engine) sampling(q *Sequence, out []int32, position, left int) (s kernels.Sampling) {
	defer func() {
		if p := recover(); p != nil {
			e.fault(q, p)
			s = kernels.Sampling{TopP: 1}
		}
	}()
	return q.rules.sampling(out, position, q.choice, left)
}

// fault marks a sequence whose guide panicked; commit ends it.
func (e *Engine) fault(q *Sequence, p any) {
	q.fault = fmt.Errorf("the request's grammar failed: %v", p)
}

// commit hands out what the step brought back.
func (e *Engine) commit(plan Plan) {
	row := 0
	for i, en := range plan.Entries {
		first := row
		for row < len(e.rows) && e.rows[row].entry == i {
			row++
		}
		e.commitEntry(en, first, row)
	}
}

func (e *Engine) commitEntry(en Entry, row, end int) {
	q, r := en.Seq, en.Seq.request
	r.times.scheduled(e.timings)
	for ; row < end && e.rows[row].prompt >= 0; row++ {
		if e.result.Sampled[row].Token < 0 {
			e.endWith(r, q.choice, failure(q, errNoNumbers))
			return
		}
		r.prompt = append(r.prompt, PromptRow{Position: e.rows[row].prompt, Choice: cloned(e.result.Sampled[row])})
		q.rows = e.rows[row].prompt
	}
	if !en.Samples {
		e.sched.Commit(en, en.Start+en.Count)
		return
	}
	var events []Event
	before := len(q.Tokens)
	for d := 0; row < end; row, d = row+1, d+1 {
		ev := e.choose(q, e.result.Sampled[row])
		events = append(events, ev)
		if ev.Finish != "" || d < en.Drafts && en.Seq.Drafts[d] != ev.Token {
			break
		}
	}
	if en.Drafts > 0 {
		e.stats.drafted(en.Drafts, len(events)-1)
	}
	q.Drafts = nil
	e.sched.Commit(en, before+len(events)-1)
	if !r.times.first.IsZero() {
		r.times.token(e.timings.ended, len(events), e.stats)
	} else {
		r.times.firstToken(e.timings.ended, e.stats)
		r.cached = q.Cached
		e.doors.computed(r, q, e.cache.BlockTokens())
	}
	for _, ev := range events {
		e.deliver(q, ev)
	}
}

// choose takes one chosen token into its sequence.
func (e *Engine) choose(q *Sequence, c kernels.Choice) Event {
	ev := Event{Choice: q.choice, Token: c.Token, StopID: -1, Chosen: cloned(c)}
	if c.Token < 0 && q.fault == nil {
		q.fault = errNoNumbers
	}
	if q.fault != nil {
		return failure(q, q.fault)
	}
	q.Tokens = append(q.Tokens, c.Token)
	if !e.accept(q, c.Token) && q.fault == nil {
		q.fault = fmt.Errorf("the model chose a token that the request's grammar does not allow")
	}
	if q.fault != nil {
		return failure(q, q.fault)
	}
	if end := q.rules.ended(q.Output(), e.cfg.MaxModelLen-len(q.Tokens)); end.why != "" {
		ev.Finish, ev.StopID, ev.Mark = end.why, end.stop, end.mark
	}
	return ev
}

func (e *Engine) accept(q *Sequence, token int32) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			e.fault(q, p)
			ok = false
		}
	}()
	return q.rules.accept(token)
}

// deliver sends an event on its way; the last one ends the choice.
func (e *Engine) deliver(q *Sequence, ev Event) {
	r := q.request
	if len(r.prompt) > 0 && q.choice == 0 {
		ev.Prompt, r.prompt = r.prompt, nil
	}
	e.stats.token(r)
	if ev.Finish != "" {
		e.endWith(r, q.choice, ev)
		return
	}
	ev.Cached = r.cached
	r.stream.put(ev)
}

// cloned copies what a result holds only until the next step.
func cloned(c kernels.Choice) kernels.Choice {
	c.Top = append([]kernels.Candidate(nil), c.Top...)
	c.Probe = append([]float32(nil), c.Probe...)
	return c
}
