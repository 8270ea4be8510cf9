package server

import (
	"encoding/json"
	"net/http"

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
	Logprobs   *int            `json:"logprobs,number"`
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
	Experts        any                        `json:"routed_experts"`
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
	ECTransfer  any                `json:"ec_transfer_params"`
	Metrics     any                `json:"metrics"`
}

// completionChunk is one event of a stream; it has only what was set.
type completionChunk struct {
	ID      string                  `json:"id"`
	Object  string                  `json:"object"`
	Created int64                   `json:"created"`
	Model   string                  `json:"model"`
	Choices []completionChunkChoice `json:"choices"`
	Usage   *streamUsage            `json:"usage,omitempty"`

	Fingerprint *string `json:"system_fingerprint,omitempty"`
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

func (s *Server) newCompletion(r *http.Request, f *completionRequest) (*completion, *apiError) {
	model, err := s.model(f.Model)
	if err != nil {
		return nil, err
	}
	if err := f.check(s.cfg.MaxModelLen); err != nil {
		return nil, err
	}
	if f.Suffix != nil {
		return nil, badValue("suffix", "suffix is not currently supported")
	}
	if f.UseBeamSearch && f.Stream {
		return nil, badValue("", "Streaming is not currently supported with beam search")
	}
	if f.UseBeamSearch && f.Echo && f.Logprobs != nil {
		return nil, badValue("echo", "`echo` with `logprobs` is not supported with beam search because beam search does not compute prompt logprobs.")
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
	if err := s.beamParams(&f.samplingFields, &p); err != nil {
		return nil, err
	}
	if f.Resume != nil && len(c.prompts) > 1 {
		return nil, badValue("roundhouse_resume", "only a stream with one choice and an id can be resumed")
	}
	if len(c.prompts)*p.N > maxPrompts {
		return nil, badValue("n", "%d prompts with %d choices each are more than %d", len(c.prompts), p.N, maxPrompts)
	}
	c.text = text
	for i, tokens := range c.prompts {
		if err := c.take(r, p, tokens, c.wanted(), "max_tokens"); err != nil {
			return nil, err
		}
		if f.Echo {
			c.texts = append(c.texts, s.cfg.Tokenizer.Decode(c.reqs[i].Tokens, false))
		}
	}
	form, err := f.form()
	if err != nil {
		return nil, err
	}
	inside, behind := s.begun(c.s.cfg.Tokenizer.Decode(c.reqs[0].Tokens, false))
	if err := c.restrict(form, thinking{allowed: f.ThinkingBudget != nil && !behind, begun: inside, budget: f.ThinkingBudget}); err != nil {
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

// logprobs settles how many candidates come with each token, and with echo
// with those of the prompt.
func (c *completion) logprobs(p *worker.Params) *apiError {
	n := c.f.Logprobs
	switch {
	case len(c.f.LogprobIDs) > 0 && n == nil:
		return badValue("logprob_token_ids", "when using `logprob_token_ids`, `logprobs` must be set.")
	case value(n, 0) < -1:
		return badValue("logprobs", "`logprobs` must be a positive value or -1.")
	}
	if err := c.s.checkLogprobs("logprobs", "sample", n); n == nil || err != nil {
		return err
	}
	p.Logprobs = *n
	if c.f.Echo && p.PromptLogprobs < 0 {
		c.f.PromptLogprobs, p.PromptLogprobs = n, *n
	}
	return nil
}

// promptList reads prompt in its four forms.
func (s *Server) promptList(f *completionRequest) ([][]int32, *apiError) {
	var many []string
	var lists [][]int32
	special := value(f.AddSpecial, true)
	if one, ok := decoded[string](f.Prompt); ok {
		if one != "" {
			many = []string{one}
		}
	} else if list, ok := decoded[[]string](f.Prompt); ok {
		many = list
	} else if ids, ok := decoded[[]int32](f.Prompt); ok {
		lists = [][]int32{ids}
	} else {
		lists, _ = decoded[[][]int32](f.Prompt)
	}
	if len(many)+len(lists) == 0 {
		return nil, noPrompt(f.Prompt)
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
			return nil, badValue("", "The decoder prompt cannot be empty")
		}
		for i, id := range list {
			switch {
			case id < 0:
				return nil, badShape("greater_than_equal", at("body.prompt", i), "Input should be greater than or equal to 0")
			case int(id) >= s.cfg.Vocab:
				return nil, badValue("", "Token id %d is out of vocabulary", id)
			}
		}
	}
	return lists, nil
}

// noPrompt is why what was sent is no prompt.
func noPrompt(raw json.RawMessage) *apiError {
	const wanted = "Input should be a string, a list of strings, a list of token ids, or a list of such lists"
	list, isList := decoded[[]json.RawMessage](raw)
	text, isText := decoded[string](raw)
	switch {
	case raw == nil || isText && text == "":
		return badValue("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
	case isList && len(list) == 0:
		return badValue("", "The decoder prompt cannot be empty")
	case isList:
		return badShape("int_type", "body.prompt.0", wanted)
	}
	return badShape("string_type", "body.prompt", wanted)
}

// decoded reads raw as a T, if it is one.
func decoded[T any](raw json.RawMessage) (T, bool) {
	var v, none T
	if json.Unmarshal(raw, &v) != nil {
		return none, false // what was read of it before the fault is not to be used
	}
	return v, true
}
