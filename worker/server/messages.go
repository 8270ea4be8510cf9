package server

import (
	"encoding/json"
	"net/http"

	"roundhouse/worker"
)

// messagesRequest is a request of Anthropic's Messages API; only text goes in
// and out.
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
}

type contentBlock struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	Thinking *string `json:"thinking,omitempty"`
}

type messagesUsage struct {
	Input  int  `json:"input_tokens"`
	Output int  `json:"output_tokens"`
	Cached *int `json:"cache_read_input_tokens,omitempty"`
}

type messagesAnswer struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Content      []contentBlock `json:"content"`
	Model        string         `json:"model"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        messagesUsage  `json:"usage"`
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
	switch {
	case f.Messages == nil:
		return nil, badShape("missing", "messages", "Field required")
	case f.MaxTokens == nil:
		return nil, badShape("missing", "max_tokens", "Field required")
	case hasEntries(f.Tools):
		return nil, notImplemented("`tools` are not supported by this engine on /v1/messages; use /v1/chat/completions.")
	}
	messages, ok := decoded[[]json.RawMessage](f.Messages)
	if !ok {
		return nil, badShape("list_type", "messages", "Input should be a valid list")
	}
	if f.System != nil {
		system, err := json.Marshal(map[string]any{"role": "system", "content": f.System})
		if err != nil {
			panic("BUG: JSON that was read cannot be written")
		}
		messages = append([]json.RawMessage{system}, messages...)
	}
	all, err := json.Marshal(messages)
	if err != nil {
		panic("BUG: JSON that was read cannot be written")
	}
	cr := &chatRequest{Model: f.Model, Messages: all, MaxCompletionTokens: f.MaxTokens}
	cr.Temperature, cr.TopP, cr.TopK, cr.Stop, cr.Stream = f.Temperature, f.TopP, f.TopK, f.StopSequences, f.Stream
	c, apiErr := s.newChat(r, cr)
	if apiErr != nil {
		return nil, apiErr
	}
	c.id = "msg_" + c.id[len("chatcmpl-"):]
	return &messagesChat{c}, nil
}

// stopOf is how this API says why an answer ended.
func stopOf(u update) (reason string, sequence *string) {
	if s, ok := u.stopped.(string); ok {
		return "stop_sequence", &s
	}
	if u.finish == worker.FinishLength {
		return "max_tokens", nil
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
	var g gathered
	var end update
	err := c.run(r.Context(), func(u update) error {
		g.add(c.readers[0].read(&u))
		end = u
		return nil
	})
	if err != nil {
		if e := c.failure(r.Context(), err); e != nil {
			refuseMessages(w, e)
		}
		return
	}
	a := messagesAnswer{ID: c.id, Type: "message", Role: "assistant", Model: c.model, Usage: c.account()}
	if g.thought {
		a.Content = append(a.Content, contentBlock{Type: "thinking", Thinking: &g.reasoning})
	}
	a.Content = append(a.Content, contentBlock{Type: "text", Text: &g.content})
	reason, sequence := stopOf(end)
	a.StopReason, a.StopSequence = &reason, sequence
	c.s.orca(w, r)
	writeJSON(w, http.StatusOK, a)
}

// blocks writes an answer's content blocks, one open at a time.
type blocks struct {
	ev    *events
	index int
	open  string // kind of the open block; "": none
}

func (b *blocks) send(kind string, fields map[string]any) error {
	fields["type"] = kind
	return b.ev.named(kind, fields)
}

func (b *blocks) say(kind, text string) error {
	if b.open != kind {
		if err := b.close(); err != nil {
			return err
		}
		b.open = kind
		block := map[string]string{"type": kind, kind: ""}
		if err := b.send("content_block_start", map[string]any{"index": b.index, "content_block": block}); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	return b.send("content_block_delta", map[string]any{"index": b.index, "delta": map[string]string{"type": kind + "_delta", kind: text}})
}

func (b *blocks) close() error {
	if b.open == "" {
		return nil
	}
	err := b.send("content_block_stop", map[string]any{"index": b.index})
	b.open = ""
	b.index++
	return err
}

// stream writes the events of one answer.
func (c *messagesChat) stream(w http.ResponseWriter, r *http.Request) {
	b := &blocks{ev: newEvents(w)}
	defer b.ev.rest()
	var end update
	err := c.run(r.Context(), func(u update) error {
		end = u
		if !b.ev.started {
			start := messagesAnswer{ID: c.id, Type: "message", Role: "assistant", Content: []contentBlock{}, Model: c.model, Usage: c.account()}
			start.Usage.Output = 0
			if err := b.send("message_start", map[string]any{"message": start}); err != nil {
				return err
			}
		}
		said := c.readers[0].read(&u)
		if said.Reasoning != nil {
			if err := b.say("thinking", *said.Reasoning); err != nil {
				return err
			}
		}
		if said.Content != nil {
			return b.say("text", *said.Content)
		}
		return nil
	})
	if err != nil {
		e := c.failure(r.Context(), err)
		switch {
		case e == nil:
		case b.ev.started:
			_ = b.ev.named("error", messagesError(e))
		default:
			refuseMessages(w, e)
		}
		return
	}
	if b.index == 0 && b.open == "" && b.say("text", "") != nil || b.close() != nil {
		return
	}
	reason, sequence := stopOf(end)
	delta := map[string]any{"stop_reason": reason, "stop_sequence": sequence}
	if b.send("message_delta", map[string]any{"delta": delta, "usage": c.account()}) == nil {
		_ = b.send("message_stop", map[string]any{})
	}
}
