package server

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"roundhouse/kernels"
	"roundhouse/worker"
)

// beamFields ask for the likeliest answers instead of sampled ones.
type beamFields struct {
	UseBeamSearch bool     `json:"use_beam_search"`
	LengthPenalty *float64 `json:"length_penalty"`
}

// checkBeams refuses what a search for the likeliest answers cannot be asked for,
// as vLLM does, and forgets what it does without.
func (f *samplingFields) checkBeams() *apiError {
	switch {
	case !f.UseBeamSearch:
		return nil
	case len(f.LogprobIDs) > 0:
		return badValue("logprob_token_ids", "`logprob_token_ids` is not supported with beam search.")
	case f.Resume != nil:
		return badValue("roundhouse_resume", "an answer of a beam search is not resumed; ask again")
	}
	return nil
}

// beamParams are what is left of the parameters in a search: none of those by
// which tokens are chosen.
func (s *Server) beamParams(f *samplingFields, p *worker.Params) *apiError {
	if !f.UseBeamSearch {
		return nil
	}
	f.PromptLogprobs, p.PromptLogprobs = nil, -1
	if err := s.checkLogprobs("logprobs", "sample", new(2*p.N)); err != nil {
		return err
	}
	if p.N > maxChoices {
		return badValue("", "n must be at most %d, got %d.", maxChoices, p.N)
	}
	return nil
}

// beam is an answer, or the beginning of one: its last token behind all before.
type beam struct {
	before *beam // nil: nothing was generated yet
	token  int32
	chosen kernels.Choice
	sum    float64 // of the logprobs, with that of the token that ended it
	length int     // tokens generated
	finish worker.Finish
}

// tokens are all of a beam's, the first one first.
func (b *beam) tokens() []*beam {
	out := make([]*beam, b.length)
	for i := b.length - 1; i >= 0; i-- {
		out[i], b = b, b.before
	}
	return out
}

// search looks for the likeliest answers to one prompt as vLLM does: of the
// beginnings that were kept the likeliest go on, as many as there are choices,
// each by one token, until the answers are as long as they may be.
type search struct {
	s       *Server
	held    *worker.Pin
	req     worker.Request // of the prompt
	width   int
	eos     int32   // ends an answer; -1: nothing does
	keepEOS bool    // the token that ends an answer is one of its tokens
	penalty float64 // of lengths: a score is the sum of the logprobs over the length to this power
	began   time.Time
	going   []*beam
	ended   []*beam
	cached  int
}

// search answers each prompt with the likeliest answers.
func (j *job) search(ctx context.Context, each func(update) error) error {
	held, err := j.s.cfg.Engine.Pin()
	if err != nil {
		return err
	}
	defer held.Release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found, failed := make([][]*beam, len(j.reqs)), make([]error, len(j.reqs))
	searches := make([]*search, len(j.reqs))
	var wg sync.WaitGroup
	for i, req := range j.reqs {
		searches[i] = j.newSearch(held, req)
		wg.Go(func() {
			if found[i], failed[i] = searches[i].run(ctx); failed[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	// Of several failures the others are that all were called off.
	slices.SortFunc(failed, func(a, b error) int { return cmp.Compare(cancelled(a), cancelled(b)) })
	if failed[0] != nil {
		return failed[0]
	}
	n := 0
	for i := range found {
		j.cached = max(j.cached, searches[i].cached)
		for _, b := range found[i] {
			if err := j.tell(n, searches[i].eos, b, each); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

// cancelled is 0 for an error of its own, 1 for one of a search that was called
// off, and 2 for none.
func cancelled(err error) int {
	switch err {
	case nil:
		return 2
	case context.Canceled:
		return 1
	}
	return 0
}

func (j *job) newSearch(held *worker.Pin, req worker.Request) *search {
	x := &search{
		s: j.s, held: held, req: req, width: req.Params.N, eos: -1, keepEOS: j.fields.IncludeStop,
		penalty: value(j.fields.LengthPenalty, 1), began: time.Now(), going: []*beam{{}},
	}
	if id, ok := j.s.cfg.Tokenizer.TokenID(j.s.cfg.EOSToken); ok && !req.Params.IgnoreEOS {
		x.eos = id
	}
	return x
}

// run returns the likeliest answers, the best first.
func (x *search) run(ctx context.Context) ([]*beam, error) {
	for length := 1; length <= x.req.Params.MaxTokens && len(x.going) > 0 && !x.settled(); length++ {
		aborted, err := x.step(ctx)
		if err != nil {
			return nil, err
		}
		if aborted {
			for _, b := range x.going {
				b.finish = worker.FinishAbort
			}
			break
		}
	}
	all := append(x.ended, x.going...)
	slices.SortStableFunc(all, func(a, b *beam) int { return cmp.Compare(x.score(b), x.score(a)) })
	return all[:min(len(all), x.width)], nil
}

// score is what answers are compared by. Their length is that with the prompt,
// without the token that ended them.
func (x *search) score(b *beam) float64 {
	length := len(x.req.Tokens) + b.length
	if b.finish == worker.FinishStop && x.keepEOS {
		length--
	}
	return b.sum / math.Pow(float64(length), x.penalty)
}

// settled reports whether no beginning can become an answer better than the worst
// of those that would be told now. A sum of logprobs only falls; what the length
// can do for it is done at one of its ends.
func (x *search) settled() bool {
	if len(x.ended) < x.width {
		return false
	}
	scores := make([]float64, len(x.ended))
	for i, b := range x.ended {
		scores[i] = x.score(b)
	}
	slices.Sort(scores)
	worst := scores[len(scores)-x.width]
	longest := float64(len(x.req.Tokens) + x.req.Params.MaxTokens)
	for _, b := range x.going {
		now := float64(len(x.req.Tokens) + b.length)
		if max(b.sum/math.Pow(now, x.penalty), b.sum/math.Pow(longest, x.penalty)) > worst {
			return false
		}
	}
	return true
}

// step has every beginning go on by its likeliest tokens and keeps the best of all.
func (x *search) step(ctx context.Context) (aborted bool, err error) {
	streams := make([]*worker.Stream, len(x.going))
	for i, b := range x.going {
		if streams[i], err = x.held.Submit(x.next(b)); err != nil {
			return false, err
		}
		defer streams[i].Close()
	}
	var on []*beam
	for i, st := range streams {
		last, err := x.wait(ctx, st)
		if err != nil {
			return false, err
		}
		if last.Token < 0 {
			return true, nil // and the others' answers with it, as vLLM does
		}
		on = append(on, x.branches(x.going[i], &last.Chosen)...)
	}
	slices.SortStableFunc(on, func(a, b *beam) int { return cmp.Compare(b.sum, a.sum) })
	x.going = on[:min(len(on), x.width)]
	return false, nil
}

// next asks for the token behind a beginning.
func (x *search) next(b *beam) worker.Request {
	req := x.req
	req.Params = worker.Params{N: 1, MaxTokens: 1, TopP: 1, Repetition: 1, IgnoreEOS: true, Logprobs: 2 * x.width, PromptLogprobs: -1}
	req.Guides = nil
	req.Tokens = make([]int32, len(x.req.Tokens), len(x.req.Tokens)+b.length)
	copy(req.Tokens, x.req.Tokens)
	for _, t := range b.tokens() {
		req.Tokens = append(req.Tokens, t.token)
	}
	if b.length > 0 {
		req.Chunks = nil
		req.Waited += time.Since(x.began) // it has had its turn in the queue
	}
	return req
}

// wait returns the one token of a request.
func (x *search) wait(ctx context.Context, st *worker.Stream) (*worker.Event, error) {
	var token *worker.Event
	for {
		events, err := st.Next(ctx)
		if err != nil {
			return nil, err
		}
		for i := range events {
			e := &events[i]
			x.cached = max(x.cached, min(e.Cached, len(x.req.Tokens)))
			if e.Token >= 0 {
				token = e
			}
			switch {
			case e.Finish == worker.FinishError:
				return nil, e.Err
			case e.Finish != "" && token != nil:
				return token, nil
			case e.Finish != "":
				return e, nil
			}
		}
	}
}

// branches are the ways in which a beginning goes on. Those that end it are put
// among the answers.
func (x *search) branches(b *beam, c *kernels.Choice) []*beam {
	var on []*beam
	for _, t := range c.Top {
		next := &beam{before: b, token: t.Token, chosen: *c, length: b.length + 1, sum: b.sum + min(0, logprob(t.Logit, c.LogSumExp))}
		next.chosen.Token, next.chosen.Logit = t.Token, t.Logit
		if t.Token != x.eos {
			on = append(on, next)
			continue
		}
		if !x.keepEOS {
			next.before, next.token, next.chosen, next.length = b.before, b.token, b.chosen, b.length
		}
		next.finish = worker.FinishStop
		x.ended = append(x.ended, next)
	}
	return on
}

// tell says an answer that was found, token by token.
func (j *job) tell(index int, eos int32, b *beam, each func(update) error) error {
	text := j.text
	text.stops, text.repeats, text.minTokens, text.includeStop = nil, nil, 0, false
	asm := newAssembler(j.s.cfg.Tokenizer, text)
	last := update{index: index, token: -1, finish: cmp.Or(b.finish, worker.FinishLength), tokens: b.length}
	if b.finish == worker.FinishStop {
		last.stopped = eos
	}
	shown := j.reqs[0].Params.Logprobs
	for i, t := range b.tokens() {
		end := goesOn
		end.Token, end.Chosen = t.token, t.chosen
		if shown >= 0 {
			end.Chosen.Top = end.Chosen.Top[:min(shown, len(end.Chosen.Top))]
		}
		if i == b.length-1 {
			end.Finish, end.Mark = last.finish, t.token == eos && b.finish == worker.FinishStop
		}
		u := update{index: index, token: t.token, text: asm.add(t.token, &end), event: &end, tokens: i + 1}
		j.generated++
		if i == b.length-1 {
			u.finish, u.stopped = last.finish, last.stopped
			return each(u)
		}
		if err := each(u); err != nil {
			return err
		}
	}
	return each(last)
}
