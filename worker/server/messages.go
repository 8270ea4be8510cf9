package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"roundhouse/worker"
)

// messagesRequest is a request of Anthropic's Messages API: text and calls of
// tools go in and out.
type messagesRequest struct {
	Model         string          `json:"model"`
	Messages      json.RawMessage `json:"messages"`
	System        json.RawMessage `json:"system"`
	MaxTokens     *int            `json:"max_tokens"`
	StopSequences []string        `json:"stop_sequences"`
	Temperature   *float64        `json:"temperature"`
	TopP          *float64        `json:"top_p"`
	TopK          *int            `json:"top_k"`
	Stream        bool            `json:"stream"`
	Tools         json.RawMessage `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Thinking      *struct {
		Type   string `json:"type"`
		Budget *int   `json:"budget_tokens"`
	} `json:"thinking"`
	messagesRefused
	refused
}

// messagesRefused are fields of this API that this engine does not have.
type messagesRefused struct {
	Container  json.RawMessage `json:"container"`
	Servers    json.RawMessage `json:"mcp_servers"`
	Management json.RawMessage `json:"context_management"`
	Format     json.RawMessage `json:"output_format"`
	Config     json.RawMessage `json:"output_config"`
}

func (f *messagesRequest) check() *apiError {
	for _, x := range []struct {
		name string
		set  bool
	}{
		{"container", f.Container != nil}, {"mcp_servers", f.Servers != nil}, {"context_management", f.Management != nil},
		{"output_format", f.Format != nil}, {"output_config", f.Config != nil},
		{"thinking.budget_tokens", f.Thinking != nil && f.Thinking.Budget != nil},
	} {
		if x.set {
			return notImplemented("`%s` is not supported by this engine.", x.name)
		}
	}
	switch {
	case f.Messages == nil:
		return badShape("missing", "messages", "Field required")
	case f.MaxTokens == nil:
		return badShape("missing", "max_tokens", "Field required")
	}
	return f.refused.check()
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
	f.MaxTokens = new(1)
	m, err := s.newMessages(r, &f)
	if err != nil {
		refuseMessages(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": m.prompt})
}

// messagesChat is one request of this route on its way.
type messagesChat struct{ *chat }

// newMessages makes a chat of the request.
func (s *Server) newMessages(r *http.Request, f *messagesRequest) (*messagesChat, *apiError) {
	if err := f.check(); err != nil {
		return nil, err
	}
	messages, err := messagesInput(f)
	if err != nil {
		return nil, err
	}
	cr := &chatRequest{Model: f.Model, Messages: messages, MaxCompletionTokens: f.MaxTokens}
	if err := messagesTools(f, cr); err != nil {
		return nil, err
	}
	if f.Thinking != nil {
		on := "true"
		if f.Thinking.Type == "disabled" {
			on = "false"
		}
		cr.TemplateArguments = map[string]json.RawMessage{"enable_thinking": json.RawMessage(on)}
	}
	cr.Temperature, cr.TopP, cr.TopK, cr.Stop, cr.Stream = f.Temperature, f.TopP, f.TopK, f.StopSequences, f.Stream
	c, err := s.newChat(r, cr)
	if err != nil {
		return nil, err
	}
	c.id = "msg_" + strings.TrimPrefix(c.id, "chatcmpl-")
	return &messagesChat{c}, nil
}

// ended counts an answer and tells why it ended, as this API says it.
func (c *messagesChat) ended(u update) (reason string, sequence *string) {
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

func (c *messagesChat) account() messagesUsage {
	u := messagesUsage{Input: c.prompt, Output: c.generated}
	if c.s.cfg.PromptTokensDetails || c.fromUs {
		u.Cached = &c.cached
	}
	return u
}

// answer gathers all and answers once.
func (c *messagesChat) answer(w http.ResponseWriter, r *http.Request) {
	b := &blocks{tell: func(string, map[string]any) error { return nil }}
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
func (c *messagesChat) stream(w http.ResponseWriter, r *http.Request) {
	ev := newEvents(w)
	defer ev.rest()
	tell := func(kind string, fields map[string]any) error {
		fields["type"] = kind
		return ev.named(kind, fields)
	}
	b := &blocks{tell: tell}
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
