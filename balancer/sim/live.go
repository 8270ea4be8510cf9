package sim

import (
	"context"
	"sync"
	"time"
)

// live computes a Batch in real time, at a Speed.
type live struct {
	speed Speed

	mu     sync.Mutex
	batch  Batch
	there  map[*Sequence]*underway
	tally  *tally
	wake   chan struct{}
	prompt int64 // tokens of prompts whose first token has come
	said   int64 // tokens generated
	hits   int64 // of prompt, those that were cached
	steps  int
	late   time.Duration // of the steps' ends together
}

// blockOf is the size of a KV block in tokens, as vLLM has it on most devices.
const blockOf = 16

func newLive(s Speed) *live {
	return &live{speed: s, there: map[*Sequence]*underway{}, tally: newTally(), wake: make(chan struct{}, 1), batch: s.batch()}
}

// add takes an answer of at most so many tokens in; each of its tokens is a value.
func (l *live) add(prompt, most int, pieces []uint64) (*Sequence, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, c := &Sequence{Prompt: prompt, Pieces: pieces}, make(chan struct{}, most) // one value a token
	l.there[s] = &underway{tokens: c, arrived: time.Now()}
	l.batch.Add(s)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return s, c
}

// remove ends an answer.
func (l *live) remove(s *Sequence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batch.Remove(s)
	l.tally.finish(l.there[s], s, time.Now())
	delete(l.there, s)
}

// mostBehind is how far an engine may be behind its steps, for want of a processor, and
// still make up for it.
const mostBehind = time.Second

// run computes until ctx ends. A step begins when the one before it was to end, however
// late that was seen: else every step would take a timer's lateness longer than it should.
func (l *live) run(ctx context.Context) {
	at := time.Now()
	for ctx.Err() == nil {
		l.mu.Lock()
		st := l.batch.Schedule()
		for s, u := range l.there {
			if s.now > 0 && u.started.IsZero() {
				u.started = at
			}
		}
		l.mu.Unlock()
		if st.Prefills+st.Decodes == 0 {
			select {
			case <-ctx.Done():
			case <-l.wake:
			}
			at = time.Now()
			continue
		}
		at = at.Add(time.Duration(l.speed.took(st) * float64(time.Second)))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(at)):
		}
		behind := time.Since(at)
		if behind > mostBehind {
			at = at.Add(behind)
		}
		l.commit(st, behind)
	}
}

// commit hands the tokens of a step out. Only now do counters move: those of a prompt
// all at once, with its first token.
func (l *live) commit(st Step, late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps++
	l.late += late
	l.batch.Commit(st)
	now := time.Now()
	l.tally.observe("vllm:iteration_tokens_total", float64(st.Prefills+st.Decodes))
	for _, s := range st.Say {
		u := l.there[s]
		if u == nil || s.Out > cap(u.tokens) {
			continue // it has left, or has all that it wanted and is about to leave
		}
		l.tally.said(u, now)
		if s.Out == 1 {
			l.prompt += int64(s.Prompt)
			l.hits += int64(s.Cached)
		}
		l.said++
		u.tokens <- struct{}{} // there is room for all of its tokens
		if s.Out == cap(u.tokens) {
			l.batch.Remove(s)
		}
	}
}

// lateness is by how much a step's end was seen too late, on average.
func (l *live) lateness() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late / time.Duration(max(1, l.steps))
}
