package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"roundhouse/worker"
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
	Metadata          json.RawMessage `json:"metadata"`
	Model             string          `json:"model"`
	Output            []any           `json:"output"`
	ParallelToolCalls bool            `json:"parallel_tool_calls"`
	Previous          *string         `json:"previous_response_id"`
	ServiceTier       string          `json:"service_tier"`
	Store             bool            `json:"store"`
	Temperature       float32         `json:"temperature"`
	Text              map[string]any  `json:"text"`
	ToolChoice        any             `json:"tool_choice"`
	Tools             any             `json:"tools"`
	TopP              float32         `json:"top_p"`
	Truncation        string          `json:"truncation"`
	Usage             *responsesUsage `json:"usage"`
}

// textItem is a message or a piece of reasoning.
type textItem struct {
	Type    string       `json:"type"`
	ID      string       `json:"id"`
	Status  string       `json:"status"`
	Role    string       `json:"role,omitempty"`
	Content []outputPart `json:"content"`
	Summary []any        `json:"summary,omitzero"`
}

type outputPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations,omitzero"`
	Logprobs    []any  `json:"logprobs,omitzero"`
}

// callItem is a call of a function.
type callItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Status    string `json:"status"`
}

type responsesUsage struct {
	Input        int           `json:"input_tokens"`
	InputDetail  promptDetails `json:"input_tokens_details"`
	Output       int           `json:"output_tokens"`
	OutputDetail outputDetails `json:"output_tokens_details"`
	Total        int           `json:"total_tokens"`
}

// begin fills in what is known before the first token.
func (x *response) begin() {
	p := x.reqs[0].Params
	x.out = responsesAnswer{
		ID: x.id, Object: "response", CreatedAt: x.created, Status: "in_progress", Instructions: x.f.Instructions,
		MaxOutputTokens: p.MaxTokens, Metadata: x.f.Metadata, Model: x.model, Output: []any{}, ParallelToolCalls: value(x.f.Parallel, true),
		ServiceTier: "auto", Temperature: p.Temperature, TopP: p.TopP, Text: map[string]any{"format": map[string]string{"type": "text"}},
		ToolChoice: "auto", Tools: []any{}, Truncation: "disabled",
	}
	if x.f.Tools != nil {
		x.out.Tools = x.f.Tools
	}
	if x.f.ToolChoice != nil {
		x.out.ToolChoice = x.f.ToolChoice
	}
	if x.f.Text != nil && x.f.Text.Format != nil {
		x.out.Text = map[string]any{"format": x.f.Text.Format}
	}
}

// finished fills in the answer's end.
func (x *response) finished(items *responseItems, why worker.Finish) {
	x.parsed("responses", x.readers[0])
	x.out.Status, x.out.Output = "completed", items.done
	if why == worker.FinishLength {
		x.out.Status, x.out.Incomplete = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	u := x.chatUsage()
	x.out.Usage = &responsesUsage{Input: u.Prompt, InputDetail: promptDetails{x.cached}, Output: u.Completion, Total: u.Total}
	if u.Output != nil {
		x.out.Usage.OutputDetail = *u.Output
	}
}

// responseItems makes an answer's items of what the model says, and tells of
// them in the API's order: an item is added, its part, the part's text, and
// all is closed in reverse. A call has arguments in place of a part.
type responseItems struct {
	x    *response
	tell func(kind string, fields map[string]any) error
	done []any

	open string // kind of the item that is open: message, reasoning or a call; "": none
	text string // of the open item
	call callItem
	nth  int // of the calls, the open one
}

const functionCallItem = "function_call"

// textKinds are the parts and events of an item by its kind.
var textKinds = map[string]struct{ prefix, part, event string }{
	"message":   {"msg_", "output_text", "response.output_text"},
	"reasoning": {"rs_", "reasoning_text", "response.reasoning_text"},
}

// add takes what one token released.
func (it *responseItems) add(d chatDelta) error {
	if d.Reasoning != nil {
		if err := it.say("reasoning", *d.Reasoning); err != nil {
			return err
		}
	}
	if d.Content != nil {
		if err := it.say("message", *d.Content); err != nil {
			return err
		}
	}
	for _, c := range d.ToolCalls {
		if err := it.calls(&c); err != nil {
			return err
		}
	}
	return nil
}

// id is that of the open item.
func (it *responseItems) id(prefix string) string {
	return fmt.Sprintf("%s%s_%d", prefix, strings.TrimPrefix(it.x.id, "resp_"), len(it.done))
}

// at adds where in the answer an event belongs.
func (it *responseItems) at(prefix string, fields map[string]any) map[string]any {
	fields["item_id"], fields["output_index"] = it.id(prefix), len(it.done)
	return fields
}

// part adds of which part an event is.
func (it *responseItems) part(fields map[string]any) map[string]any {
	fields["content_index"] = 0
	return it.at(textKinds[it.open].prefix, fields)
}

// item is the open item of text.
func (it *responseItems) item(status string) textItem {
	k := textKinds[it.open]
	item := textItem{Type: it.open, ID: it.id(k.prefix), Status: status, Content: []outputPart{}}
	if it.open == "message" {
		item.Role = "assistant"
	} else {
		item.Summary = []any{}
	}
	return item
}

// content is the part of the open item.
func (it *responseItems) content() outputPart {
	p := outputPart{Type: textKinds[it.open].part, Text: it.text}
	if it.open == "message" {
		p.Annotations, p.Logprobs = []any{}, []any{}
	}
	return p
}

// say adds text to an item, which is opened where it is not.
func (it *responseItems) say(kind, text string) error {
	if it.open != kind {
		if err := it.shut(); err != nil {
			return err
		}
		it.open, it.text = kind, ""
		if err := it.tell("response.output_item.added", map[string]any{"output_index": len(it.done), "item": it.item("in_progress")}); err != nil {
			return err
		}
		if err := it.tell("response.content_part.added", it.part(map[string]any{"part": it.content()})); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	it.text += text
	fields := it.part(map[string]any{"delta": text})
	if kind == "message" {
		fields["logprobs"] = []any{}
	}
	return it.tell(textKinds[kind].event+".delta", fields)
}

// calls adds a piece of a call.
func (it *responseItems) calls(d *toolDelta) error {
	if it.open != functionCallItem || it.nth != d.Index {
		if err := it.shut(); err != nil {
			return err
		}
		it.open, it.nth = functionCallItem, d.Index
		it.call = callItem{
			Type: functionCallItem, ID: it.id("fc_"), CallID: "call_" + strings.TrimPrefix(d.ID, callPrefix), Name: d.Function.Name, Status: "in_progress",
		}
		if err := it.tell("response.output_item.added", map[string]any{"output_index": len(it.done), "item": it.call}); err != nil {
			return err
		}
	}
	more := value(d.Function.Arguments, "")
	if more == "" {
		return nil
	}
	it.call.Arguments += more
	return it.tell("response.function_call_arguments.delta", it.at("fc_", map[string]any{"delta": more}))
}

// shut closes the open item.
func (it *responseItems) shut() error {
	var item any
	switch it.open {
	case "":
		return nil
	case functionCallItem:
		it.call.Status = "completed"
		if err := it.tell("response.function_call_arguments.done", it.at("fc_", map[string]any{"name": it.call.Name, "arguments": it.call.Arguments})); err != nil {
			return err
		}
		item = it.call
	default:
		k, whole := textKinds[it.open], it.item("completed")
		fields := it.part(map[string]any{"text": it.text})
		if it.open == "message" {
			fields["logprobs"] = []any{}
		}
		if err := it.tell(k.event+".done", fields); err != nil {
			return err
		}
		if err := it.tell("response.content_part.done", it.part(map[string]any{"part": it.content()})); err != nil {
			return err
		}
		whole.Content = append(whole.Content, it.content())
		item = whole
	}
	if err := it.tell("response.output_item.done", map[string]any{"output_index": len(it.done), "item": item}); err != nil {
		return err
	}
	it.done, it.open = append(it.done, item), ""
	return nil
}

// finish closes what is open. An answer that says nothing is an empty message.
func (it *responseItems) finish() error {
	if it.open == "" && len(it.done) == 0 {
		if err := it.say("message", ""); err != nil {
			return err
		}
	}
	return it.shut()
}
