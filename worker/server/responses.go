package server

import (
	"encoding/json"
	"net/http"

	"roundhouse/worker"
)

// responsesRequest is a request of OpenAI's Responses API. Only text goes in
// and out; answers are not stored.
type responsesRequest struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    *string         `json:"instructions"`
	MaxOutputTokens *int            `json:"max_output_tokens"`
	Temperature     *float64        `json:"temperature"`
	TopP            *float64        `json:"top_p"`
	TopK            *int            `json:"top_k"`
	Seed            *int64          `json:"seed"`
	Stop            stringList      `json:"stop"`
	Stream          bool            `json:"stream"`
	Previous        *string         `json:"previous_response_id"`
	Background      bool            `json:"background"`
	Tools           json.RawMessage `json:"tools"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	Metadata        json.RawMessage `json:"metadata"`
	Text            *struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Reasoning *struct {
		Effort *string `json:"effort"`
	} `json:"reasoning"`
	CacheSalt *string `json:"cache_salt"`
	Priority  int     `json:"priority"`
}

type responsesAnswer struct {
	ID                string          `json:"id"`
	Object            string          `json:"object"`
	CreatedAt         int64           `json:"created_at"`
	Status            string          `json:"status"`
	Background        bool            `json:"background"`
	Error             any             `json:"error"`
	Incomplete        any             `json:"incomplete_details"`
	Instructions      *string         `json:"instructions"`
	MaxOutputTokens   int             `json:"max_output_tokens"`
	Metadata          json.RawMessage `json:"metadata"`
	Model             string          `json:"model"`
	Output            []outputItem    `json:"output"`
	ParallelToolCalls bool            `json:"parallel_tool_calls"`
	Previous          *string         `json:"previous_response_id"`
	ServiceTier       string          `json:"service_tier"`
	Store             bool            `json:"store"`
	Temperature       float32         `json:"temperature"`
	Text              map[string]any  `json:"text"`
	ToolChoice        string          `json:"tool_choice"`
	Tools             []any           `json:"tools"`
	TopP              float32         `json:"top_p"`
	Truncation        string          `json:"truncation"`
	Usage             *responsesUsage `json:"usage"`
}

type outputItem struct {
	Type    string       `json:"type"`
	ID      string       `json:"id"`
	Status  string       `json:"status"`
	Role    string       `json:"role,omitempty"`
	Content []outputPart `json:"content"`
	Summary []any        `json:"summary,omitempty"`
}

type outputPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations,omitzero"`
	Logprobs    []any  `json:"logprobs,omitzero"`
}

type responsesUsage struct {
	Input        int           `json:"input_tokens"`
	InputDetail  promptDetails `json:"input_tokens_details"`
	Output       int           `json:"output_tokens"`
	OutputDetail outputDetails `json:"output_tokens_details"`
	Total        int           `json:"total_tokens"`
}

// response is one request of this route on its way.
type response struct {
	*chat
	f   *responsesRequest
	out responsesAnswer
}

func (s *Server) newResponse(r *http.Request, f *responsesRequest) (*response, *apiError) {
	switch {
	case f.Previous != nil:
		return nil, notFound("previous_response_id", "Response with id '%.128s' not found: this engine stores no answers; send the whole conversation.", *f.Previous)
	case f.Background:
		return nil, notImplemented("`background` is not supported by this engine.")
	case f.Input == nil:
		return nil, badShape("missing", "input", "Field required")
	case hasEntries(f.Tools):
		return nil, notImplemented("`tools` are not supported by this engine on /v1/responses; use /v1/chat/completions.")
	}
	messages, err := responseMessages(f)
	if err != nil {
		return nil, err
	}
	cr := &chatRequest{Model: f.Model, Messages: messages, MaxCompletionTokens: f.MaxOutputTokens}
	cr.Temperature, cr.TopP, cr.TopK, cr.Seed, cr.Stop = f.Temperature, f.TopP, f.TopK, f.Seed, f.Stop
	cr.CacheSalt, cr.Priority, cr.Stream = f.CacheSalt, f.Priority, f.Stream
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
	c.id = "resp_" + c.id[len("chatcmpl-"):]
	p := c.reqs[0].Params
	x.out = responsesAnswer{
		ID: c.id, Object: "response", CreatedAt: c.created, Status: "in_progress", Instructions: f.Instructions,
		MaxOutputTokens: p.MaxTokens, Metadata: f.Metadata, Model: c.model, Output: []outputItem{}, ParallelToolCalls: true,
		ServiceTier: "auto", Temperature: p.Temperature, TopP: p.TopP, Text: map[string]any{"format": map[string]string{"type": "text"}},
		ToolChoice: "auto", Tools: []any{}, Truncation: "disabled",
	}
	return x, nil
}

func hasEntries(raw json.RawMessage) bool {
	list, ok := decoded[[]any](raw)
	return raw != nil && (!ok || len(list) > 0)
}

// responseFormat turns the flat form of this API into that of chats.
func responseFormat(format json.RawMessage) json.RawMessage {
	var f map[string]json.RawMessage
	if json.Unmarshal(format, &f) != nil || string(f["type"]) != `"json_schema"` {
		return format
	}
	kind := f["type"]
	delete(f, "type")
	out, err := json.Marshal(map[string]any{"type": kind, "json_schema": f})
	if err != nil {
		panic("BUG: JSON that was read cannot be written")
	}
	return out
}

// responseMessages makes a chat of instructions and input.
func responseMessages(f *responsesRequest) (json.RawMessage, *apiError) {
	type entry map[string]any
	var list []any
	if f.Instructions != nil && *f.Instructions != "" {
		list = append(list, entry{"role": "system", "content": *f.Instructions})
	}
	if text, ok := decoded[string](f.Input); ok {
		list = append(list, entry{"role": "user", "content": text})
	} else {
		items, ok := decoded[[]map[string]json.RawMessage](f.Input)
		if !ok || len(items) == 0 {
			return nil, badValue("input", "input must be a string or a non-empty list of messages")
		}
		for i, item := range items {
			if kind := string(item["type"]); kind != "" && kind != `"message"` {
				if kind == `"reasoning"` {
					continue // what the model thought before is no part of the conversation
				}
				return nil, badValue("input", "entry %d of input has type %.64s, and this model reads messages only", i, kind)
			}
			list = append(list, entry{"role": item["role"], "content": item["content"]})
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, badValue("input", "input is not a list of messages: %v", err)
	}
	return data, nil
}

// answer gathers all and answers once.
func (x *response) answer(w http.ResponseWriter, r *http.Request) {
	var g gathered
	var why worker.Finish
	err := x.run(r.Context(), func(u update) error {
		g.add(x.readers[0].read(&u))
		why = u.finish
		return nil
	})
	if err != nil {
		x.refuse(w, r, err)
		return
	}
	x.finished(&g, why)
	x.s.orca(w, r)
	writeJSON(w, http.StatusOK, x.out)
}

// finished fills in the answer's end.
func (x *response) finished(g *gathered, why worker.Finish) {
	x.out.Status = "completed"
	if why == worker.FinishLength {
		x.out.Status, x.out.Incomplete = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	if g.thought {
		x.out.Output = append(x.out.Output, x.item("reasoning", "rs_", "completed", outputPart{Type: "reasoning_text", Text: g.reasoning}))
	}
	if g.any || !g.thought {
		x.out.Output = append(x.out.Output, x.item("message", "msg_", "completed", x.part(g.content)))
	}
	u := x.chatUsage()
	x.out.Usage = &responsesUsage{Input: u.Prompt, InputDetail: promptDetails{x.cached}, Output: u.Completion, Total: u.Total}
	if u.Output != nil {
		x.out.Usage.OutputDetail = *u.Output
	}
}

func (x *response) part(text string) outputPart {
	return outputPart{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

func (x *response) item(kind, prefix, status string, parts ...outputPart) outputItem {
	it := outputItem{Type: kind, ID: prefix + x.id[len("resp_"):], Status: status, Content: parts}
	if kind == "message" {
		it.Role = "assistant"
	}
	if parts == nil {
		it.Content = []outputPart{}
	}
	return it
}

// responseStream writes the events of one answer in the API's order: an item
// is added, its part, the part's text, and all is closed in reverse.
type responseStream struct {
	x      *response
	ev     *events
	number int
	index  int
	open   string // kind of the item that is open; "": none
	text   string // of the open item
}

func (st *responseStream) send(kind string, fields map[string]any) error {
	fields["type"], fields["sequence_number"] = kind, st.number
	st.number++
	return st.ev.named(kind, fields)
}

// kinds are the names of events by the kind of item.
var kinds = map[string]struct{ prefix, part, delta, done string }{
	"message":   {"msg_", "output_text", "response.output_text.delta", "response.output_text.done"},
	"reasoning": {"rs_", "reasoning_text", "response.reasoning_text.delta", "response.reasoning_text.done"},
}

func (st *responseStream) say(kind, text string) error {
	if st.open != kind {
		if err := st.close(); err != nil {
			return err
		}
		st.open, st.text = kind, ""
		part := outputPart{Type: kinds[kind].part, Annotations: []any{}}
		if err := st.send("response.output_item.added", map[string]any{"output_index": st.index, "item": st.x.item(kind, kinds[kind].prefix, "in_progress")}); err != nil {
			return err
		}
		if err := st.send("response.content_part.added", st.at(map[string]any{"part": part})); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	st.text += text
	return st.send(kinds[kind].delta, st.at(map[string]any{"delta": text, "logprobs": []any{}}))
}

// at adds where in the answer an event belongs.
func (st *responseStream) at(fields map[string]any) map[string]any {
	fields["item_id"] = kinds[st.open].prefix + st.x.id[len("resp_"):]
	fields["output_index"], fields["content_index"] = st.index, 0
	return fields
}

func (st *responseStream) close() error {
	if st.open == "" {
		return nil
	}
	k := kinds[st.open]
	part := st.x.part(st.text)
	part.Type = k.part
	if err := st.send(k.done, st.at(map[string]any{"text": st.text, "logprobs": []any{}})); err != nil {
		return err
	}
	if err := st.send("response.content_part.done", st.at(map[string]any{"part": part})); err != nil {
		return err
	}
	err := st.send("response.output_item.done", map[string]any{"output_index": st.index, "item": st.x.item(st.open, k.prefix, "completed", part)})
	st.open = ""
	st.index++
	return err
}

func (x *response) stream(w http.ResponseWriter, r *http.Request) {
	st := &responseStream{x: x, ev: newEvents(w)}
	defer st.ev.rest()
	var g gathered
	var why worker.Finish
	err := x.run(r.Context(), func(u update) error {
		if st.number == 0 {
			for _, kind := range []string{"response.created", "response.in_progress"} {
				if err := st.send(kind, map[string]any{"response": x.out}); err != nil {
					return err
				}
			}
		}
		why = u.finish
		said := x.readers[0].read(&u)
		g.add(said)
		if said.Reasoning != nil {
			if err := st.say("reasoning", *said.Reasoning); err != nil {
				return err
			}
		}
		if said.Content != nil {
			return st.say("message", *said.Content)
		}
		return nil
	})
	if err != nil {
		st.ev.fail(x.failure(r.Context(), err))
		return
	}
	if !g.any && st.say("message", "") != nil || st.close() != nil {
		return
	}
	x.finished(&g, why)
	_ = st.send("response."+x.out.Status, map[string]any{"response": x.out})
}
