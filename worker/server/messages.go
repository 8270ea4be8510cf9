package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"roundhouse/worker"
)

// messagesRequest is a request of Anthropic's Messages API: text, thoughts and
// calls of tools go in and out. Fields that only Anthropic's own servers can
// honour (context_management, container, mcp_servers) change no answer here and
// are not read, as in vLLM.
type messagesRequest struct {
	Model             string                     `json:"model"`
	Messages          json.RawMessage            `json:"messages"`
	System            json.RawMessage            `json:"system"`
	MaxTokens         *int                       `json:"max_tokens"`
	StopSequences     []string                   `json:"stop_sequences"`
	Temperature       *float64                   `json:"temperature"`
	TopP              *float64                   `json:"top_p"`
	TopK              *int                       `json:"top_k,wide"`
	Stream            bool                       `json:"stream"`
	Tools             json.RawMessage            `json:"tools"`
	ToolChoice        json.RawMessage            `json:"tool_choice"`
	Thinking          *thinkingConfig            `json:"thinking"`
	OutputConfig      *outputConfig              `json:"output_config"`
	OutputFormat      *outputFormat              `json:"output_format"` // its older name
	CacheSalt         *string                    `json:"cache_salt"`
	TemplateArguments map[string]json.RawMessage `json:"chat_template_kwargs"`
	refused
}

type thinkingConfig struct {
	Type   string `json:"type"`
	Budget *int   `json:"budget_tokens"`
}

type outputConfig struct {
	Effort *string       `json:"effort"`
	Format *outputFormat `json:"format"`
}

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// minThinking is the least budget of tokens for thoughts.
const minThinking = 1024

func (f *messagesRequest) check(counting bool) *apiError {
	switch {
	case f.Messages == nil:
		return badShape("missing", "body.messages", "Field required")
	case f.MaxTokens == nil && !counting:
		return badShape("missing", "body.max_tokens", "Field required")
	case f.MaxTokens != nil && *f.MaxTokens < 1:
		return badShape("value_error", "body.max_tokens", "Value error, max_tokens must be positive")
	}
	if err := f.checkThinking(counting); err != nil {
		return err
	}
	if c := f.OutputConfig; c != nil {
		if err := oneOf(c.Effort, "body.output_config.effort", "low", "medium", "high", "xhigh", "max"); err != nil {
			return err
		}
	}
	return f.refused.check()
}

func (f *messagesRequest) checkThinking(counting bool) *apiError {
	t := f.Thinking
	if t == nil {
		return nil
	}
	if err := oneOf(&t.Type, "body.thinking.type", "enabled", "disabled", "adaptive"); err != nil {
		return err
	}
	switch {
	case t.Type != "enabled":
	case t.Budget == nil:
		return badShape("missing", "body.thinking.enabled.budget_tokens", "Field required")
	case *t.Budget < minThinking:
		return badShape("greater_than_equal", "body.thinking.enabled.budget_tokens", "Input should be greater than or equal to 1024")
	case !counting && *t.Budget >= *f.MaxTokens:
		return badShape("value_error", "body", "Value error, thinking.budget_tokens must be less than max_tokens")
	}
	return nil
}

// messagesError is an error in Anthropic's shape.
func messagesError(e *apiError) map[string]any {
	kind := map[int]string{
		http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error", http.StatusNotFound: "not_found_error",
		http.StatusRequestEntityTooLarge: "request_too_large", http.StatusServiceUnavailable: "overloaded_error",
	}[e.Code]
	if kind == "" {
		kind = "api_error"
	}
	return map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": e.Message}}
}

// refuseMessages answers with an error in Anthropic's shape.
func refuseMessages(w http.ResponseWriter, e *apiError) { writeJSON(w, e.Code, messagesError(e)) }

// countTokens tells how long the prompt of a request is.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	var f messagesRequest
	if err := readBody(r, s.cfg.BodyLimit, &f); err != nil {
		refuseMessages(w, err)
		return
	}
	cr, err := s.messagesChat(&f, true)
	var model string
	if err == nil {
		model, err = s.model(cr.Model)
	}
	var p *prompt
	if err == nil && model != "" {
		p, err = s.renderChat(cr)
	}
	if err != nil {
		refuseMessages(w, err)
		return
	}
	n := len(p.tokens)
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": n, "context_management": map[string]int{"original_input_tokens": n}})
}

// messagesJob is one request of this route on its way.
type messagesJob struct{ *chat }

// newMessages makes a chat of the request.
func (s *Server) newMessages(r *http.Request, f *messagesRequest) (*messagesJob, *apiError) {
	cr, err := s.messagesChat(f, false)
	if err != nil {
		return nil, err
	}
	c, err := s.newChat(r, cr)
	if err != nil {
		return nil, err
	}
	c.rename("msg_" + strings.TrimPrefix(c.id, "chatcmpl-"))
	return &messagesJob{c}, nil
}

// messagesChat turns a request into that of a chat; counting: nothing is to be
// answered.
func (s *Server) messagesChat(f *messagesRequest, counting bool) (*chatRequest, *apiError) {
	if err := f.check(counting); err != nil {
		return nil, err
	}
	messages, err := messagesInput(f, s.systemFirst())
	if err != nil {
		return nil, err
	}
	cr := &chatRequest{Model: f.Model, Messages: messages, MaxCompletionTokens: f.MaxTokens, TemplateArguments: f.TemplateArguments}
	if err := messagesTools(f, cr); err != nil {
		return nil, err
	}
	cr.Temperature, cr.TopP, cr.TopK, cr.Stop, cr.Stream, cr.CacheSalt = f.Temperature, f.TopP, f.TopK, f.StopSequences, f.Stream, f.CacheSalt
	format := f.OutputFormat
	if c := f.OutputConfig; c != nil {
		cr.ReasoningEffort = c.Effort
		if c.Format != nil {
			format = c.Format
		}
	}
	if format != nil && format.Schema != nil {
		cr.ResponseFormat = marshalled(map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "output", "schema": format.Schema}})
	}
	if t := f.Thinking; t != nil {
		switch t.Type {
		case "disabled":
			cr.ReasoningEffort = new("none")
		case "enabled":
			cr.ThinkingBudget = t.Budget
		}
	}
	return cr, nil
}

// ended counts an answer and tells why it ended, as this API says it.
func (c *messagesJob) ended(u update) (reason string, sequence *string) {
	c.parsed("other", c.readers[0])
	if s, ok := u.stopped.(string); ok {
		return "stop_sequence", &s
	}
	switch {
	case u.finish == worker.FinishLength:
		return "max_tokens", nil
	case c.readers[0].parser.Calls() > 0:
		return "tool_use", nil
	}
	return "end_turn", nil
}

func (c *messagesJob) account() messagesUsage {
	u := messagesUsage{Input: c.prompt, Output: c.generated}
	if c.s.cfg.PromptTokensDetails {
		cached, written := c.cached, c.writtenToCache()
		u.Input, u.Cached, u.Written = max(0, c.prompt-cached-written), &cached, &written
	}
	return u
}

// answer gathers all and answers once.
func (c *messagesJob) answer(w http.ResponseWriter, r *http.Request) {
	b := &blocks{seed: c.id, tell: func(string, map[string]any) error { return nil }}
	var end update
	err := c.run(r.Context(), func(u update) error {
		end = u
		return b.add(c.readers[0].read(&u))
	})
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		if e := c.failure(r.Context(), err); e != nil {
			refuseMessages(w, e)
		}
		return
	}
	a := messagesAnswer{ID: c.id, Type: "message", Role: "assistant", Content: b.done, Model: c.model, Usage: c.account()}
	reason, sequence := c.ended(end)
	a.StopReason, a.StopSequence = &reason, sequence
	c.s.orca(w, r)
	writeJSON(w, http.StatusOK, a)
}

// stream writes the events of one answer.
func (c *messagesJob) stream(w http.ResponseWriter, r *http.Request) {
	ev := newEvents(w)
	defer ev.rest()
	tell := func(kind string, fields map[string]any) error {
		fields["type"] = kind
		return ev.named(kind, fields)
	}
	b := &blocks{seed: c.id, tell: tell}
	var end update
	err := c.run(r.Context(), func(u update) error {
		end = u
		if !ev.started {
			start := messagesAnswer{ID: c.id, Type: "message", Role: "assistant", Content: []any{}, Model: c.model, Usage: c.account()}
			start.Usage.Output = 0
			if err := tell("message_start", map[string]any{"message": start}); err != nil {
				return err
			}
		}
		return b.add(c.readers[0].read(&u))
	})
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		e := c.failure(r.Context(), err)
		switch {
		case e == nil:
		case ev.started:
			_ = ev.named("error", messagesError(e))
		default:
			refuseMessages(w, e)
		}
		return
	}
	reason, sequence := c.ended(end)
	delta := map[string]any{"stop_reason": reason, "stop_sequence": sequence}
	if tell("message_delta", map[string]any{"delta": delta, "usage": c.account()}) == nil {
		_ = tell("message_stop", map[string]any{})
	}
}
