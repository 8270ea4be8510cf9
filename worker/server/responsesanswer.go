package server

import (
	"encoding/json"
)

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
	MaxToolCalls      *int            `json:"max_tool_calls"`
	Metadata          json.RawMessage `json:"metadata"`
	Model             string          `json:"model"`
	Output            []any           `json:"output"`
	ParallelToolCalls bool            `json:"parallel_tool_calls"`
	Presence          float32         `json:"presence_penalty"`
	Frequency         float32         `json:"frequency_penalty"`
	Previous          *string         `json:"previous_response_id"`
	Prompt            any             `json:"prompt"`
	Reasoning         any             `json:"reasoning"`
	ServiceTier       string          `json:"service_tier"`
	Store             bool            `json:"store"`
	Temperature       float32         `json:"temperature"`
	Text              map[string]any  `json:"text"`
	ToolChoice        any             `json:"tool_choice"`
	Tools             any             `json:"tools"`
	TopLogprobs       *int            `json:"top_logprobs"`
	TopP              float32         `json:"top_p"`
	Truncation        string          `json:"truncation"`
	Usage             *responsesUsage `json:"usage"`
	User              *string         `json:"user"`
	KVTransfer        any             `json:"kv_transfer_params"`
	ECTransfer        any             `json:"ec_transfer_params"`
	InputMessages     []rawMessage    `json:"input_messages"`
	OutputMessages    []rawMessage    `json:"output_messages"`
}

// rawMessage is what the model read or wrote.
type rawMessage struct {
	Message string  `json:"message"`
	Tokens  []int32 `json:"tokens"`
	Type    string  `json:"type"`
}

type responsesUsage struct {
	Input        int             `json:"input_tokens"`
	InputDetail  inputDetails    `json:"input_tokens_details"`
	Output       int             `json:"output_tokens"`
	OutputDetail responsesOutput `json:"output_tokens_details"`
	Total        int             `json:"total_tokens"`
}

// inputDetails and responsesOutput have lists by turn for servers that call
// tools themselves; here every answer is one turn.
type inputDetails struct {
	Cached      int   `json:"cached_tokens"`
	Written     int   `json:"cache_write_tokens"`
	Turns       []int `json:"input_tokens_per_turn"`
	CachedTurns []int `json:"cached_tokens_per_turn"`
}

type responsesOutput struct {
	Reasoning int   `json:"reasoning_tokens"`
	Tool      int   `json:"tool_output_tokens"`
	Turns     []int `json:"output_tokens_per_turn"`
	ToolTurns []int `json:"tool_output_tokens_per_turn"`
}

// begin fills in what is known before the first token.
func (x *response) begin() {
	p, f := x.reqs[0].Params, x.f
	x.out = responsesAnswer{
		ID: x.id, Object: "response", CreatedAt: x.created, Status: "in_progress", Background: f.Background, Instructions: f.Instructions,
		MaxOutputTokens: p.MaxTokens, MaxToolCalls: f.MaxToolCalls, Metadata: f.Metadata, Model: x.model, Output: []any{},
		ParallelToolCalls: value(f.Parallel, true), Presence: p.Presence, Frequency: p.Frequency, Previous: f.Previous,
		ServiceTier: value(f.ServiceTier, "auto"), Store: value(f.Store, true), Temperature: p.Temperature, TopP: p.TopP,
		Text: map[string]any{"format": map[string]string{"type": "text"}}, ToolChoice: "auto", Tools: []any{},
		Truncation: value(f.Truncation, "disabled"), User: f.User,
	}
	if p.Logprobs >= 0 {
		x.out.TopLogprobs = &p.Logprobs
	}
	if r := f.Reasoning; r != nil {
		x.out.Reasoning = map[string]*string{"effort": r.Effort, "summary": r.Summary, "generate_summary": r.GenerateSummary, "context": nil, "mode": nil}
	}
	if f.Tools != nil {
		x.out.Tools = f.Tools
	}
	switch {
	case !f.hasTools():
		x.out.ToolChoice = "none"
	case f.ToolChoice != nil:
		x.out.ToolChoice = f.ToolChoice
	}
	if f.Text != nil {
		x.out.Text["verbosity"] = f.Text.Verbosity
		if f.Text.Format != nil {
			x.out.Text["format"] = wholeFormat(f.Text.Format)
		}
	}
}

// wholeFormat is a format with all the names that one of its kind has.
func wholeFormat(raw json.RawMessage) any {
	format, ok := decoded[map[string]json.RawMessage](raw)
	if !ok || string(format["type"]) != `"json_schema"` {
		return raw
	}
	for _, name := range []string{"description", "strict"} {
		if format[name] == nil {
			format[name] = null
		}
	}
	return format
}

// rawMessages shows what went in and came out, where the request asks for it.
func (x *response) rawMessages() {
	if !x.f.ShowMessages {
		return
	}
	const kind = "raw_message_tokens"
	x.out.InputMessages = []rawMessage{{x.promptText(), x.reqs[0].Tokens, kind}}
	x.out.OutputMessages = []rawMessage{{x.s.cfg.Tokenizer.Decode(x.tokens, x.text.skipSpecial), x.tokens, kind}}
}
