package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"roundhouse/worker"
)

// responsesRequest is a request of OpenAI's Responses API: text and calls of
// functions go in and out; answers are not stored.
type responsesRequest struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    *string         `json:"instructions"`
	MaxOutputTokens *int            `json:"max_output_tokens"`
	Temperature     *float64        `json:"temperature"`
	TopP            *float64        `json:"top_p"`
	TopK            *int            `json:"top_k"`
	Repetition      *float64        `json:"repetition_penalty"`
	Seed            *int64          `json:"seed"`
	Stop            stringList      `json:"stop"`
	Stream          bool            `json:"stream"`
	Tools           json.RawMessage `json:"tools"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	Parallel        *bool           `json:"parallel_tool_calls"`
	Metadata        json.RawMessage `json:"metadata"`
	Text            *struct {
		Format    json.RawMessage `json:"format"`
		Verbosity *string         `json:"verbosity"`
	} `json:"text"`
	Reasoning *struct {
		Effort  *string `json:"effort"`
		Summary *string `json:"summary"`
	} `json:"reasoning"`
	CacheSalt *string `json:"cache_salt"`
	Priority  int     `json:"priority"`
	responsesRefused
	refused
}

// responsesRefused are fields of this API that this engine does not have.
type responsesRefused struct {
	Previous     *string         `json:"previous_response_id"`
	Background   bool            `json:"background"`
	Store        bool            `json:"store"`
	Conversation json.RawMessage `json:"conversation"`
	Prompt       json.RawMessage `json:"prompt"`
	Include      []string        `json:"include"`
	Truncation   *string         `json:"truncation"`
	TopLogprobs  *int            `json:"top_logprobs"`
}

func (f *responsesRequest) check() *apiError {
	if f.Previous != nil {
		return notFound("previous_response_id", "Response with id '%.128s' not found: this engine stores no answers; send the whole conversation.", *f.Previous)
	}
	refuse := func(name, instead string) *apiError {
		e := notImplemented("`%s` is not supported by this engine%s", name, instead)
		e.Param = name
		return e
	}
	switch {
	case f.Background:
		return refuse("background", ".")
	case f.Store:
		return refuse("store", ", which stores no answers; leave it out or send false.")
	case f.Conversation != nil:
		return refuse("conversation", ", which stores none; send the whole conversation as input.")
	case f.Prompt != nil:
		return refuse("prompt", "; send input and instructions.")
	case len(f.Include) > 0:
		return refuse("include", ".")
	case value(f.Truncation, "disabled") != "disabled":
		return refuse("truncation", ", except as disabled.")
	case value(f.TopLogprobs, 0) != 0:
		return refuse("top_logprobs", " on /v1/responses; use /v1/chat/completions.")
	case f.Text != nil && value(f.Text.Verbosity, "medium") != "medium":
		return refuse("text.verbosity", ", except as medium.")
	case f.Reasoning != nil && value(f.Reasoning.Summary, "auto") != "auto":
		return refuse("reasoning.summary", ", except as auto.")
	case f.Input == nil:
		return badShape("missing", "input", "Field required")
	}
	return f.refused.check()
}

// response is one request of this route on its way.
type response struct {
	*chat
	f   *responsesRequest
	out responsesAnswer
}

func (s *Server) newResponse(r *http.Request, f *responsesRequest) (*response, *apiError) {
	if err := f.check(); err != nil {
		return nil, err
	}
	messages, err := responseMessages(f)
	if err != nil {
		return nil, err
	}
	cr := &chatRequest{Model: f.Model, Messages: messages, MaxCompletionTokens: f.MaxOutputTokens, ParallelToolCalls: f.Parallel}
	if cr.Tools, cr.ToolChoice, err = responseTools(f.Tools, f.ToolChoice); err != nil {
		return nil, err
	}
	cr.Temperature, cr.TopP, cr.TopK, cr.Seed, cr.Stop = f.Temperature, f.TopP, f.TopK, f.Seed, f.Stop
	cr.CacheSalt, cr.Priority, cr.Stream, cr.Repetition = f.CacheSalt, f.Priority, f.Stream, f.Repetition
	if f.Reasoning != nil {
		cr.ReasoningEffort = f.Reasoning.Effort
	}
	if f.Text != nil {
		cr.ResponseFormat = responseFormat(f.Text.Format)
	}
	c, err := s.newChat(r, cr)
	if err != nil {
		return nil, err
	}
	x := &response{chat: c, f: f}
	c.id = "resp_" + strings.TrimPrefix(c.id, "chatcmpl-")
	x.begin()
	return x, nil
}

// answer gathers all and answers once.
func (x *response) answer(w http.ResponseWriter, r *http.Request) {
	items := &responseItems{x: x, tell: func(string, map[string]any) error { return nil }}
	why, err := x.generate(r, items)
	if err != nil {
		x.refuse(w, r, err)
		return
	}
	x.finished(items, why)
	x.s.orca(w, r)
	writeJSON(w, http.StatusOK, x.out)
}

// stream writes the events of one answer.
func (x *response) stream(w http.ResponseWriter, r *http.Request) {
	ev, number := newEvents(w), 0
	defer ev.rest()
	tell := func(kind string, fields map[string]any) error {
		fields["type"], fields["sequence_number"] = kind, number
		number++
		return ev.named(kind, fields)
	}
	items := &responseItems{x: x, tell: tell}
	why, err := x.generate(r, items)
	if err != nil {
		e := x.failure(r.Context(), err)
		if e == nil || !ev.started {
			ev.fail(e)
			return
		}
		x.out.Status, x.out.Error = "failed", map[string]string{"code": "server_error", "message": e.Message}
		_ = tell("response.failed", map[string]any{"response": x.out})
		return
	}
	x.finished(items, why)
	_ = tell("response."+x.out.Status, map[string]any{"response": x.out})
}

// generate has every token's text put into items.
func (x *response) generate(r *http.Request, items *responseItems) (why worker.Finish, err error) {
	begun := false
	err = x.run(r.Context(), func(u update) error {
		if !begun {
			begun = true
			for _, kind := range []string{"response.created", "response.in_progress"} {
				if err := items.tell(kind, map[string]any{"response": x.out}); err != nil {
					return err
				}
			}
		}
		why = u.finish
		return items.add(x.readers[0].read(&u))
	})
	if err == nil {
		err = items.finish()
	}
	return why, err
}
