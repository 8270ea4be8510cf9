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
}

// blockOf is the size of a KV block in tokens, as vLLM has it on most devices.
const blockOf = 16

func newLive(s Speed) *live {
	return &live{
		speed: s, there: map[*Sequence]*underway{}, tally: newTally(), wake: make(chan struct{}, 1),
		batch: Batch{Blocks: max(1, s.Capacity/blockOf), Block: blockOf, Budget: s.Budget, Seats: s.seats()},
	}
}

// add takes an answer of at most so many tokens in; each of its tokens is a value.
func (l *live) add(prompt, most int) (*Sequence, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, c := &Sequence{Prompt: prompt}, make(chan struct{}, most) // one value a token
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

// run computes until ctx ends.
func (l *live) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.mu.Lock()
		st, began := l.batch.Schedule(), time.Now()
		for s, u := range l.there {
			if s.now > 0 && u.started.IsZero() {
				u.started = began
			}
		}
		l.mu.Unlock()
		if st.Prefills+st.Decodes == 0 {
			select {
			case <-ctx.Done():
			case <-l.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.took(st)):
		}
		l.commit(st)
	}
}

// took is how long a step takes.
func (l *live) took(st Step) time.Duration {
	v := &l.speed
	s := v.Base + float64(st.Prefills)*v.PerPrefill + st.Pairs*v.PerPair + float64(st.Decodes)*v.PerDecode + float64(st.Context)*v.PerContext
	return time.Duration(s * float64(time.Second))
}

// commit hands the tokens of a step out. Only now do counters move: those of a prompt
// all at once, with its first token.
func (l *live) commit(st Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
		}
		l.said++
		u.tokens <- struct{}{} // there is room for all of its tokens
	}
}
