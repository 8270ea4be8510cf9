package server

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"roundhouse/kernels"
	"roundhouse/worker"
	"roundhouse/worker/api"
)

// resumeField is what the door sends to have a stream go on.
type resumeField = api.Resume

// job is one API request on its way through the engine: one or more prompts,
// each with n choices.
type job struct {
	s       *Server
	fields  *samplingFields
	id      string
	model   string
	created int64
	fromUs  bool // a door of ours asked: it is told more
	reqs    []worker.Request
	text    textOptions
	resumed bool
	submit  func(worker.Request) (*worker.Stream, error) // nil: the engine's own

	prompt, generated, cached int
	promptRows                [][]worker.PromptRow
}

// update is one token of one choice, or its end.
type update struct {
	index   int // of the choice: prompt · n + choice
	token   int32
	text    string
	event   *worker.Event
	finish  worker.Finish
	stopped any
	replay  bool // it was sent before: parsers see it, the client does not
	tokens  int  // of the choice, with this one
}

var (
	safeID   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	safeHex  = regexp.MustCompile(`^[0-9a-f]{16}$`)
	maxChunk = 8192
)

// newJob starts the account of a request: its id, and what the door says.
func (s *Server) newJob(r *http.Request, prefix string, f *samplingFields, model string) *job {
	id := r.Header.Get(api.HeaderRequestID)
	if f.RequestID != "" {
		id = f.RequestID
	}
	if !safeID.MatchString(id) {
		id = randomID()
	}
	j := &job{s: s, fields: f, id: prefix + id, model: model, created: time.Now().Unix(), fromUs: safeID.MatchString(r.Header.Get(api.HeaderDoor))}
	if f.Resume != nil {
		j.id, j.created, j.resumed = f.Resume.ID, f.Resume.Created, true
	}
	return j
}

// rename gives the request the id that its answer has, by which it can be aborted.
func (j *job) rename(id string) {
	j.id = id
	for i := range j.reqs {
		j.reqs[i].ID = id
	}
}

// take makes an engine's request of a prompt that may be answered by as many
// tokens as are wanted by the field named; nil: all that fit.
func (j *job) take(r *http.Request, p worker.Params, tokens []int32, wanted *int, field string) (err *apiError) {
	f := j.fields
	tokens = j.s.truncate(tokens, f)
	if p.MaxTokens, err = j.s.room(len(tokens), wanted, field); err != nil {
		return err
	}
	if p.MinTokens > p.MaxTokens {
		return badValue("", "min_tokens must be less than or equal to max_tokens=%d, got %d.", p.MaxTokens, p.MinTokens)
	}
	req := worker.Request{ID: j.id, Tokens: tokens, Params: p, Priority: f.Priority}
	if v := r.Header.Get("X-Vllm-Priority"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			return badValue("priority", "the header X-Vllm-Priority is not a whole number")
		}
		req.Priority = n
	}
	if req.Adapter = j.s.cfg.Engine.Adapter(j.model); req.Adapter == nil && !slices.Contains(j.s.cfg.Models, j.model) {
		return notFound("model", "The model `%.256s` does not exist.", j.model) // it was unloaded this moment
	}
	if f.CacheSalt != nil {
		req.Salt = *f.CacheSalt
	}
	if j.fromUs {
		req.Door = r.Header.Get(api.HeaderDoor)
		req.Chunks = chunks(r.Header.Get(api.HeaderChunks))
		req.Waited = api.Waited(r.Header.Get(api.HeaderWaited))
	}
	if err := j.goOn(&req); err != nil {
		return err
	}
	j.reqs = append(j.reqs, req)
	j.prompt += len(tokens)
	return nil
}

// goOn puts what was sent before into the request that goes on with it.
func (j *job) goOn(req *worker.Request) *apiError {
	resume := j.fields.Resume
	if resume == nil {
		return nil
	}
	req.Resume = resume.TokenIDs
	for _, id := range req.Resume {
		if id < 0 || int(id) >= j.s.cfg.Vocab {
			return badValue("roundhouse_resume", "token id %d is out of the vocabulary", id)
		}
	}
	if len(req.Resume) > req.Params.MaxTokens {
		return badValue("roundhouse_resume", "%d tokens were sent of a request that allows %d", len(req.Resume), req.Params.MaxTokens)
	}
	return nil
}

// chunks reads the door's digests; what is no digest is left out with all
// that follows it.
func chunks(header string) []string {
	if header == "" {
		return nil
	}
	list := strings.Split(header, ",")
	for i, c := range list {
		if !safeHex.MatchString(c) || i == maxChunk {
			return list[:i]
		}
	}
	return list
}

// choices is how many answers the job has.
func (j *job) choices() int {
	n := 0
	for _, r := range j.reqs {
		n += r.Params.N
	}
	return n
}

// batch is what one stream brought.
type batch struct {
	prompt int
	events []worker.Event
	err    error
}

// run generates and calls each for every token, in order within a choice. It
// ends when all choices have, when ctx does, or when each fails.
func (j *job) run(ctx context.Context, each func(update) error) error {
	if j.fields.UseBeamSearch {
		return j.search(ctx, each)
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	j.promptRows = make([][]worker.PromptRow, len(j.reqs))
	n := j.reqs[0].Params.N
	asm := make([]*assembler, 0, j.choices())
	var streams []*worker.Stream
	submit := j.submit
	if submit == nil {
		submit = j.s.cfg.Engine.Submit
	}
	for _, r := range j.reqs {
		st, err := submit(r)
		if err != nil {
			return err
		}
		defer st.Close()
		streams = append(streams, st)
		for range r.Params.N {
			asm = append(asm, newAssembler(j.s.cfg.Tokenizer, j.text))
		}
		if err := j.replay(asm[0], r.Resume, each); err != nil {
			return err
		}
	}
	next := j.merge(ctx, &wg, streams)
	left := len(asm)
	for left > 0 {
		b := next()
		if b.err != nil {
			return b.err
		}
		for i := range b.events {
			ended, err := j.event(asm, n, b.prompt, streams[b.prompt], &b.events[i], each)
			if err != nil {
				return err
			}
			if ended {
				left--
			}
		}
	}
	return nil
}

// goesOn is the event of a token after which more comes.
var goesOn = worker.Event{StopID: -1}

// replay brings an assembler to where the stream was cut. The last token waits
// for the engine's word on whether it ended the choice.
func (j *job) replay(a *assembler, tokens []int32, each func(update) error) error {
	if len(tokens) == 0 {
		return nil
	}
	j.generated += len(tokens)
	last := len(tokens) - 1
	for _, id := range tokens[:last] {
		if err := each(update{token: id, text: a.add(id, &goesOn), replay: true}); err != nil {
			return err
		}
	}
	a.pending = tokens[last]
	return nil
}

// merge returns a function that waits for the next events of any stream.
func (j *job) merge(ctx context.Context, wg *sync.WaitGroup, streams []*worker.Stream) func() batch {
	if len(streams) == 1 {
		return func() batch {
			events, err := streams[0].Next(ctx)
			return batch{0, events, err}
		}
	}
	all := make(chan batch)
	for i, st := range streams {
		left := j.reqs[i].Params.N
		wg.Go(func() {
			for left > 0 {
				events, err := st.Next(ctx)
				for _, e := range events {
					if e.Finish != "" {
						left--
					}
				}
				select {
				case all <- batch{i, events, err}:
				case <-ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		})
	}
	return func() batch {
		select {
		case b := <-all:
			return b
		case <-ctx.Done():
			return batch{err: ctx.Err()}
		}
	}
}

// event passes one event on. It reports whether it ended its choice.
func (j *job) event(asm []*assembler, n, prompt int, st *worker.Stream, e *worker.Event, each func(update) error) (bool, error) {
	j.cached = max(j.cached, e.Cached)
	j.promptRows[prompt] = append(j.promptRows[prompt], e.Prompt...)
	c := prompt*n + e.Choice
	a := asm[c]
	if a.finish != "" {
		return false, nil // of what the engine was already computing when a stop string ended the choice
	}
	if e.Finish == worker.FinishError {
		return false, e.Err
	}
	if a.pending >= 0 {
		token, end := a.pending, &goesOn
		a.pending = -1
		if e.Token < 0 {
			end = e // the request was complete with what was sent before
		}
		said := update{index: c, token: token, text: a.add(token, end), replay: true}
		if err := each(said); err != nil {
			return false, err
		}
		if a.finish != "" {
			st.End(e.Choice, a.finish)
			return true, each(update{index: c, token: -1, event: e, finish: a.finish, stopped: a.stopped, tokens: a.tokens})
		}
	}
	text := a.add(e.Token, e)
	if a.finish != "" && e.Finish == "" {
		st.End(e.Choice, a.finish)
	}
	if e.Token >= 0 {
		j.generated++
	}
	return a.finish != "", each(update{index: c, token: e.Token, text: text, event: e, finish: a.finish, stopped: a.stopped, tokens: a.tokens})
}

// failure is how an error of run is told to the client; nil when it is gone.
func (j *job) failure(ctx context.Context, err error) *apiError {
	var own *apiError
	var failed *kernels.StepError
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.Is(err, worker.ErrClosed):
		return unavailable("the worker is shutting down")
	case j.s.cfg.Engine.Failed() != nil:
		return internal("EngineCore encountered an issue. See stack trace (above) for the root cause.")
	case errors.As(err, &failed):
		return j.s.stepFailed(failed)
	default:
		return badValue("", "%s", err.Error())
	}
}

// refuse answers with why there is no answer.
func (j *job) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if e := j.failure(r.Context(), err); e != nil {
		writeError(w, e)
	}
}
