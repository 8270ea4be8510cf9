package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"roundhouse/worker"
)

// responsesRequest is a request of OpenAI's Responses API: text and calls of
// tools go in and out; answers are kept for a while.
type responsesRequest struct {
	Model             string                     `json:"model"`
	Input             json.RawMessage            `json:"input"`
	Instructions      *string                    `json:"instructions"`
	MaxOutputTokens   *int                       `json:"max_output_tokens,wide"`
	MaxToolCalls      *int                       `json:"max_tool_calls"`
	Tools             json.RawMessage            `json:"tools"`
	ToolChoice        json.RawMessage            `json:"tool_choice"`
	Parallel          *bool                      `json:"parallel_tool_calls"`
	Text              *responsesText             `json:"text"`
	Reasoning         *responsesReasoning        `json:"reasoning"`
	IncludeReasoning  *bool                      `json:"include_reasoning"`
	Include           []string                   `json:"include"`
	TopLogprobs       *int                       `json:"top_logprobs,number"`
	Truncation        *string                    `json:"truncation"`
	ServiceTier       *string                    `json:"service_tier"`
	Store             *bool                      `json:"store"`
	Background        bool                       `json:"background"`
	Previous          *string                    `json:"previous_response_id"`
	Prompt            json.RawMessage            `json:"prompt"`
	ShowMessages      bool                       `json:"enable_response_messages"`
	TemplateArguments map[string]json.RawMessage `json:"chat_template_kwargs"`
	samplingFields

	history []json.RawMessage // messages of the answer that this one goes on from
}

type responsesText struct {
	Format    json.RawMessage `json:"format"`
	Verbosity *string         `json:"verbosity"`
}

type responsesReasoning struct {
	Effort          *string `json:"effort"`
	Summary         *string `json:"summary"`
	GenerateSummary *string `json:"generate_summary"`
}

// What may be asked to come with an answer. Those that are about tools of
// OpenAI's bring nothing, because there are no such tools.
const (
	includeLogprobs  = "message.output_text.logprobs"
	includeEncrypted = "reasoning.encrypted_content"
)

var includes = []string{
	"code_interpreter_call.outputs", "computer_call_output.output.image_url", "file_search_call.results",
	"message.input_image.image_url", includeLogprobs, includeEncrypted, "web_search_call.results", "web_search_call.action.sources",
}

func (f *responsesRequest) includes(what string) bool {
	for _, i := range f.Include {
		if i == what {
			return true
		}
	}
	return false
}

func (f *responsesRequest) check() *apiError {
	for i, name := range f.Include {
		if err := oneOf(&name, at("body.include", i), includes...); err != nil {
			return err
		}
	}
	if _, ok := decoded[map[string]string](f.Metadata); f.Metadata != nil && !ok {
		return badShape("dict_type", "body.metadata", "Input should be a valid dictionary of texts")
	}
	switch {
	case f.Background && !value(f.Store, true):
		return badValue("background", "background can only be used when `store` is true")
	case f.Prompt != nil:
		return badValue("prompt", "prompt template is not supported")
	case f.Input == nil:
		return badShape("missing", "body.input", "Field required")
	}
	if r := f.Reasoning; r != nil {
		if err := oneOf(r.Effort, "body.reasoning.effort", efforts...); err != nil {
			return err
		}
	}
	for name, v := range map[string]*float64{"presence_penalty": f.Presence, "frequency_penalty": f.Frequency} {
		if v != nil && !(*v >= -2 && *v <= 2) {
			return badShape("less_than_equal", "body."+name, "Input should be greater than or equal to -2 and less than or equal to 2")
		}
	}
	return oneOf(f.Truncation, "body.truncation", "auto", "disabled")
}

// response is one request of this route on its way.
type response struct {
	*chat
	f      *responsesRequest
	tools  map[string]responseTool // by the name that the model calls
	out    responsesAnswer
	said   gathered
	tokens []int32
}

func (s *Server) newResponse(r *http.Request, f *responsesRequest) (*response, *apiError) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.Previous != nil {
		kept, err := s.stored.get(*f.Previous, s.owner(r))
		if err != nil {
			return nil, err
		}
		f.history = kept.history()
	}
	messages, unfinished, err := f.messages()
	if err != nil {
		return nil, err
	}
	cr := &chatRequest{Model: f.Model, Messages: marshalled(messages), MaxCompletionTokens: f.MaxOutputTokens, ParallelToolCalls: f.Parallel, answerField: "max_output_tokens", unparsed: true}
	tools, err := f.chatTools(cr)
	if err != nil {
		return nil, err
	}
	f.sample(cr)
	if unfinished {
		cr.ContinueFinal, cr.AddGenerationPrompt = true, new(false)
	}
	if err := s.stored.mayRun(f.Background); err != nil {
		return nil, err
	}
	c, err := s.newChat(r, cr)
	if err != nil {
		return nil, err
	}
	x := &response{chat: c, f: f, tools: tools}
	id := strings.TrimPrefix(c.id, "chatcmpl-")
	if !strings.HasPrefix(id, "resp_") {
		id = "resp_" + id
	}
	c.rename(id)
	x.begin()
	return x, nil
}

// sample sets how the chat's tokens are chosen and shown.
func (f *responsesRequest) sample(cr *chatRequest) {
	cr.samplingFields = f.samplingFields
	cr.MaxTokens, cr.PromptLogprobs, cr.StreamOptions, cr.ResponseFormat = nil, nil, nil, nil // not of this API
	cr.N, cr.IncludeReasoning, cr.TemplateArguments = nil, f.IncludeReasoning, f.TemplateArguments
	if f.includes(includeLogprobs) {
		cr.Logprobs, cr.TopLogprobs = true, f.TopLogprobs
	}
	if f.Reasoning != nil {
		cr.ReasoningEffort = f.Reasoning.Effort
	}
	if f.Text != nil && f.Text.Format != nil {
		cr.ResponseFormat = responseFormat(f.Text.Format)
	}
	if value(f.Truncation, "disabled") == "auto" {
		cr.TruncatePrompt = new(-1)
	}
}

// answer gathers all and answers once.
func (x *response) answer(w http.ResponseWriter, r *http.Request) {
	if x.f.Background {
		writeJSON(w, http.StatusOK, x.s.background(x, r))
		return
	}
	items := &responseItems{x: x, tell: func(string, map[string]any) error { return nil }}
	why, err := x.generate(r.Context(), items)
	if err != nil {
		x.refuse(w, r, err)
		return
	}
	x.finished(items, why)
	x.keep(r)
	x.s.orca(w, r)
	writeJSON(w, http.StatusOK, x.out)
}

// stream writes the events of one answer.
func (x *response) stream(w http.ResponseWriter, r *http.Request) {
	ev := newEvents(w)
	defer ev.rest()
	if x.f.Background {
		x.s.background(x, r)
		x.s.stored.follow(r.Context(), x.id, x.s.owner(r), -1, ev)
		return
	}
	if e := x.streamTo(r.Context(), ev.named); e != nil && !ev.started {
		ev.fail(e)
		return
	}
	x.keep(r)
}

// teller writes one event under its name.
type teller func(kind string, fields any) error

// finished fills in the answer's end.
func (x *response) finished(items *responseItems, why worker.Finish) {
	x.parsed("responses", x.readers[0])
	x.out.Status, x.out.Output = "completed", items.done
	if why == worker.FinishLength {
		x.out.Status, x.out.Incomplete = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	u := x.chatUsage()
	x.out.Usage = &responsesUsage{
		Input: u.Prompt, Output: u.Completion, Total: u.Total,
		InputDetail:  inputDetails{Cached: x.cached, Written: x.writtenToCache(), Turns: []int{}, CachedTurns: []int{}},
		OutputDetail: responsesOutput{Turns: []int{}, ToolTurns: []int{}},
	}
	if u.Output != nil {
		x.out.Usage.OutputDetail.Reasoning = u.Output.Reasoning
	}
	x.rawMessages()
}
