package server

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"roundhouse/kernels"
	"roundhouse/worker"
)

// Bounds of a completion request.
const (
	maxPrompts       = 1024
	defaultMaxTokens = 16
)

type completionRequest struct {
	Model      string          `json:"model"`
	Prompt     json.RawMessage `json:"prompt"`
	Suffix     *string         `json:"suffix"`
	Echo       bool            `json:"echo"`
	Logprobs   *int            `json:"logprobs"`
	AddSpecial *bool           `json:"add_special_tokens"`
	samplingFields
}

type completionChoice struct {
	Index          int                        `json:"index"`
	Text           string                     `json:"text"`
	Logprobs       *textLogprobs              `json:"logprobs"`
	Finish         *string                    `json:"finish_reason"`
	Stop           any                        `json:"stop_reason"`
	TokenIDs       []int32                    `json:"token_ids"`
	PromptLogprobs []map[string]promptLogprob `json:"prompt_logprobs"`
	PromptTokenIDs []int32                    `json:"prompt_token_ids"`
}

type completionAnswer struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	Choices     []completionChoice `json:"choices"`
	ServiceTier *string            `json:"service_tier"`
	Fingerprint *string            `json:"system_fingerprint"`
	Usage       *usage             `json:"usage"`
	KVTransfer  any                `json:"kv_transfer_params"`
}

// completionChunk is one event of a stream; it has only what was set.
type completionChunk struct {
	ID      string                  `json:"id"`
	Object  string                  `json:"object"`
	Created int64                   `json:"created"`
	Model   string                  `json:"model"`
	Choices []completionChunkChoice `json:"choices"`
	Usage   *usage                  `json:"usage,omitempty"`
}

type completionChunkChoice struct {
	Index          int           `json:"index"`
	Text           string        `json:"text"`
	Logprobs       *textLogprobs `json:"logprobs"`
	Finish         *string       `json:"finish_reason"`
	Stop           any           `json:"stop_reason"`
	PromptTokenIDs []int32       `json:"prompt_token_ids"`
	TokenIDs       []int32       `json:"token_ids"`
}

// completion is one request of this route on its way.
type completion struct {
	*job
	f       *completionRequest
	prompts [][]int32
	texts   []string // of the prompts, when they are echoed
	discard bool     // max_tokens 0: the prompt alone is wanted
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	var f completionRequest
	if err := readBody(r, s.cfg.BodyLimit, &f); err != nil {
		writeError(w, err)
		return
	}
	c, err := s.newCompletion(r, &f)
	if err != nil {
		writeError(w, err)
		return
	}
	if f.Stream {
		c.stream(w, r)
		return
	}
	c.answer(w, r)
}

func (s *Server) newCompletion(r *http.Request, f *completionRequest) (*completion, *apiError) {
	model, err := s.model(f.Model)
	if err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.Suffix != nil && *f.Suffix != "" {
		return nil, badValue("suffix", "suffix is not currently supported")
	}
	if f.Echo && f.PromptEmbeds != nil {
		return nil, badValue("echo", "Echo is unsupported with prompt embeds.")
	}
	c := &completion{f: f, job: s.newJob(r, "cmpl-", &f.samplingFields, model)}
	if c.prompts, err = s.promptList(f); err != nil {
		return nil, err
	}
	p, text, err := s.params(&f.samplingFields)
	if err != nil {
		return nil, err
	}
	if err := c.logprobs(&p); err != nil {
		return nil, err
	}
	if f.Resume != nil && len(c.prompts) > 1 {
		return nil, badValue("roundhouse_resume", "only a stream with one choice and an id can be resumed")
	}
	if len(c.prompts)*p.N > maxPrompts {
		return nil, badValue("n", "%d prompts with %d choices each are more than %d", len(c.prompts), p.N, maxPrompts)
	}
	c.text = text
	for _, tokens := range c.prompts {
		tokens = s.truncate(tokens, &f.samplingFields)
		p := p
		if p.MaxTokens, err = s.room(len(tokens), c.wanted()); err != nil {
			return nil, err
		}
		if err := checkMinTokens(p); err != nil {
			return nil, err
		}
		if err := c.add(r, &f.samplingFields, p, tokens); err != nil {
			return nil, err
		}
		if f.Echo {
			c.texts = append(c.texts, s.cfg.Tokenizer.Decode(tokens, false))
		}
	}
	form, err := f.form()
	if err != nil {
		return nil, err
	}
	if err := c.restrict(form, false, false); err != nil {
		return nil, err
	}
	return c, nil
}

// wanted is how many tokens are asked for. With echo, none may be; one is
// computed then and thrown away, because the prompt's logprobs are wanted.
func (c *completion) wanted() *int {
	n := value(c.f.MaxTokens, defaultMaxTokens)
	if n == 0 && c.f.Echo {
		c.discard, n = true, 1
	}
	return &n
}

func (c *completion) logprobs(p *worker.Params) *apiError {
	if c.f.Logprobs == nil {
		return nil
	}
	n := *c.f.Logprobs
	if n < 0 {
		return badValue("logprobs", "`logprobs` must be a positive value.")
	}
	if n > c.s.cfg.MaxLogprobs {
		return badValue("logprobs", "Requested sample logprobs of %d, which is greater than max allowed: %d", n, c.s.cfg.MaxLogprobs)
	}
	p.Logprobs = n
	if c.f.Echo && p.PromptLogprobs < 0 {
		p.PromptLogprobs = n
	}
	return nil
}

// promptList reads prompt in its four forms.
func (s *Server) promptList(f *completionRequest) ([][]int32, *apiError) {
	var many []string
	var lists [][]int32
	special := value(f.AddSpecial, true)
	if one, ok := decoded[string](f.Prompt); ok {
		many = []string{one}
	} else if list, ok := decoded[[]string](f.Prompt); ok {
		many = list
	} else if ids, ok := decoded[[]int32](f.Prompt); ok {
		lists = [][]int32{ids}
	} else {
		lists, _ = decoded[[][]int32](f.Prompt)
	}
	if len(many)+len(lists) == 0 {
		return nil, badValue("prompt", "Either prompt or prompt_embeds must be provided and non-empty: a string, a list of strings, a list of token ids, or a list of such lists.")
	}
	if n := max(len(many), len(lists)); n > maxPrompts {
		return nil, badValue("prompt", "at most %d prompts are allowed, got %d", maxPrompts, n)
	}
	for _, text := range many {
		if err := s.checkLength(text); err != nil {
			return nil, err
		}
		lists = append(lists, s.encode(text, special, true))
	}
	for _, list := range lists {
		if len(list) == 0 {
			return nil, badValue("prompt", "The decoder prompt cannot be empty")
		}
		for _, id := range list {
			if id < 0 || int(id) >= s.cfg.Vocab {
				return nil, badValue("prompt", "Token id %d is out of vocabulary", id)
			}
		}
	}
	return lists, nil
}

// decoded reads raw as a T, if it is one.
func decoded[T any](raw json.RawMessage) (T, bool) {
	var v, none T
	if json.Unmarshal(raw, &v) != nil {
		return none, false // what was read of it before the fault is not to be used
	}
	return v, true
}

// answer gathers all and answers once.
func (c *completion) answer(w http.ResponseWriter, r *http.Request) {
	choices := make([]completionChoice, c.choices())
	n := c.reqs[0].Params.N
	probs := make([]*textLogprobs, len(choices))
	for i := range choices {
		choices[i] = completionChoice{Index: i}
		if c.f.Logprobs != nil {
			probs[i] = &textLogprobs{}
		}
	}
	texts, tokens := make([]string, len(choices)), make([][]int32, len(choices))
	kept := make([][]*kernels.Choice, len(choices))
	err := c.run(r.Context(), func(u update) error {
		if u.replay {
			return nil
		}
		texts[u.index] += u.text
		if u.token >= 0 {
			tokens[u.index] = append(tokens[u.index], u.token)
			kept[u.index] = append(kept[u.index], &u.event.Chosen)
		}
		if u.finish != "" {
			why := string(u.finish)
			choices[u.index].Finish, choices[u.index].Stop = &why, u.stopped
		}
		return nil
	})
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	for i := range choices {
		ch, p := &choices[i], i/n
		prompt := c.reqs[p].Tokens
		if c.discard {
			texts[i], tokens[i], kept[i] = "", nil, nil
		}
		if c.f.Echo {
			ch.Text = c.texts[p]
			if probs[i] != nil {
				c.echoLogprobs(probs[i], p)
			}
		}
		ch.Text += texts[i]
		for k, id := range tokens[i] {
			if probs[i] != nil {
				probs[i].add(c.s, id, kept[i][k], c.reqs[p].Params.ProbeIDs, c.f.TokensAsIDs)
			}
		}
		ch.Logprobs = probs[i]
		if c.f.ReturnTokenIDs {
			ch.TokenIDs, ch.PromptTokenIDs = tokens[i], prompt
		}
		if c.f.PromptLogprobs != nil {
			ch.PromptLogprobs = c.s.promptLogprobs(prompt, c.promptRows[p])
		}
	}
	if c.discard {
		c.generated = 0
	}
	c.s.orca(w, r)
	writeJSON(w, http.StatusOK, completionAnswer{
		ID: c.id, Object: "text_completion", Created: c.created, Model: c.model, Choices: choices, Usage: c.usage(),
	})
}

// echoLogprobs puts the prompt's tokens before the answer's.
func (c *completion) echoLogprobs(l *textLogprobs, p int) {
	prompt := c.reqs[p].Tokens
	byPosition := make([]*kernels.Choice, len(prompt))
	for i := range c.promptRows[p] {
		row := &c.promptRows[p][i]
		byPosition[row.Position] = &row.Choice
	}
	for i, id := range prompt {
		l.add(c.s, id, byPosition[i], nil, c.f.TokensAsIDs)
	}
}

// refuse tells why there is no answer.
func (c *completion) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if e := c.failure(r.Context(), err); e != nil {
		writeError(w, e)
	}
}

// stream writes an event a token.
func (c *completion) stream(w http.ResponseWriter, r *http.Request) {
	ev := newEvents(w)
	defer ev.rest()
	ids := c.f.ReturnTokenIDs
	n := c.reqs[0].Params.N
	offsets := make([]int, c.choices())
	first := make([]bool, c.choices())
	for i := range first {
		first[i] = len(c.reqs[i/n].Resume) == 0
	}
	err := c.run(r.Context(), func(u update) error {
		if u.replay {
			if c.f.Echo && offsets[u.index] == 0 {
				l := textLogprobs{}
				c.echoLogprobs(&l, 0)
				offsets[u.index] = l.next
			}
			offsets[u.index] += utf8.RuneCountInString(c.s.tokenText(u.token, false))
			return nil
		}
		text, p := u.text, u.index/n
		opening := first[u.index]
		first[u.index] = false
		if c.discard {
			text = ""
		}
		if opening && c.f.Echo {
			text = c.texts[p] + text
		}
		if text == "" && u.finish == "" && !ids && c.f.Logprobs == nil {
			return nil
		}
		choice := completionChunkChoice{Index: u.index, Text: text, Stop: u.stopped}
		if u.finish != "" {
			why := string(u.finish)
			choice.Finish = &why
		}
		c.streamLogprobs(&choice, u, p, opening, &offsets[u.index])
		if ids {
			choice.TokenIDs = []int32{}
			if u.token >= 0 && !c.discard {
				choice.TokenIDs = append(choice.TokenIDs, u.token)
			}
			if opening {
				choice.PromptTokenIDs = c.reqs[p].Tokens
			}
		}
		chunk := c.chunk(choice)
		if o := c.f.StreamOptions; o != nil && o.ContinuousUsage && o.IncludeUsage {
			chunk.Usage = c.usage()
		}
		return ev.send(chunk)
	})
	if err != nil {
		ev.fail(c.failure(r.Context(), err))
		return
	}
	if c.discard {
		c.generated = 0
	}
	if c.s.cfg.ForceUsage || c.f.StreamOptions != nil && c.f.StreamOptions.IncludeUsage {
		chunk := c.chunk()
		chunk.Usage = c.usage()
		if ev.send(chunk) != nil {
			return
		}
	}
	ev.done()
}

func (c *completion) streamLogprobs(choice *completionChunkChoice, u update, p int, opening bool, offset *int) {
	if c.f.Logprobs == nil {
		return
	}
	l := &textLogprobs{next: *offset}
	if opening && c.f.Echo {
		c.echoLogprobs(l, p)
	}
	if u.token >= 0 && !c.discard {
		l.add(c.s, u.token, &u.event.Chosen, c.reqs[p].Params.ProbeIDs, c.f.TokensAsIDs)
	}
	*offset = l.next
	if len(l.Tokens) > 0 {
		choice.Logprobs = l
	}
}

func (c *completion) chunk(choices ...completionChunkChoice) completionChunk {
	if choices == nil {
		choices = []completionChunkChoice{}
	}
	return completionChunk{ID: c.id, Object: "text_completion", Created: c.created, Model: c.model, Choices: choices}
}
