package server

import (
	"encoding/json"
	"fmt"
	"strings"
)

// textItem is a message or a piece of reasoning.
type textItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	Role      string          `json:"role,omitempty"`
	Content   []outputPart    `json:"content"`
	Summary   []any           `json:"summary,omitzero"`
	Encrypted json.RawMessage `json:"encrypted_content,omitempty"` // of a piece of reasoning
	Phase     json.RawMessage `json:"phase,omitempty"`             // of a message
}

type outputPart struct {
	Type        string        `json:"type"`
	Text        string        `json:"text"`
	Annotations []any         `json:"annotations,omitzero"`
	Logprobs    []chatLogprob `json:"logprobs,omitzero"`
}

// callItem is a call of a function; that of a custom tool has a text, input,
// in place of arguments.
type callItem struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Namespace *string `json:"namespace,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"`
	Status    string  `json:"status"`
}

// responseItems makes an answer's items of what the model says, and tells of
// them in the API's order: an item is added, its part, the part's text, and
// all is closed in reverse. A call has arguments in place of a part.
type responseItems struct {
	x    *response
	tell func(kind string, fields map[string]any) error
	done []any

	open     string          // kind of the item that is open: message, reasoning or a call; "": none
	text     strings.Builder // of the open item, or the arguments of the open call
	probs    []chatLogprob   // of the open message
	logprobs []chatLogprob   // of the token whose text is being put in
	call     callItem
	custom   *customText     // of the open call; nil: it has arguments
	input    strings.Builder // of the open call of a custom tool
	nth      int             // of the calls, the open one
}

// The kinds of items that are calls.
const (
	functionCallItem = "function_call"
	customCallItem   = "custom_tool_call"
)

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
	if it.inCall() {
		fields["item_id"] = it.call.ID
	}
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
		item.Role, item.Phase = "assistant", null
	} else {
		item.Summary, item.Encrypted = []any{}, null
	}
	return item
}

// content is the part of the open item.
func (it *responseItems) content() outputPart {
	p := outputPart{Type: textKinds[it.open].part, Text: it.text.String()}
	if it.open == "message" {
		p.Annotations, p.Logprobs = []any{}, append([]chatLogprob{}, it.probs...)
	}
	return p
}

// say adds text to an item, which is opened where it is not.
func (it *responseItems) say(kind, text string) error {
	if it.open != kind {
		if err := it.shut(); err != nil {
			return err
		}
		it.open, it.probs = kind, nil
		it.text.Reset()
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
	it.text.WriteString(text)
	fields := it.part(map[string]any{"delta": text})
	if kind == "message" {
		fields["logprobs"] = append([]chatLogprob{}, it.logprobs...)
		it.probs = append(it.probs, it.logprobs...)
	}
	it.logprobs = nil
	return it.tell(textKinds[kind].event+".delta", fields)
}

// calls adds a piece of a call.
func (it *responseItems) calls(d *toolDelta) error {
	if !it.inCall() || it.nth != d.Index {
		if err := it.shut(); err != nil {
			return err
		}
		it.begin(d)
		if err := it.tell("response.output_item.added", map[string]any{"output_index": len(it.done), "item": it.call}); err != nil {
			return err
		}
	}
	more := value(d.Function.Arguments, "")
	it.text.WriteString(more)
	event := "response.function_call_arguments.delta"
	if it.custom != nil {
		event, more = "response.custom_tool_call_input.delta", it.custom.add(more)
		it.input.WriteString(more)
	}
	if more == "" {
		return nil
	}
	return it.tell(event, it.at("", map[string]any{"delta": more}))
}

func (it *responseItems) inCall() bool {
	return it.open == functionCallItem || it.open == customCallItem
}

// begin opens a call.
func (it *responseItems) begin(d *toolDelta) {
	tool, known := it.x.tools[d.Function.Name]
	it.open, it.nth, it.custom = functionCallItem, d.Index, nil
	it.text.Reset()
	it.input.Reset()
	it.call = callItem{CallID: "call_" + strings.TrimPrefix(d.ID, callPrefix), Name: d.Function.Name, Status: "in_progress"}
	if known {
		it.call.Name = tool.name
		if tool.namespace != "" {
			it.call.Namespace = &tool.namespace
		}
	}
	prefix, none := "fc_", ""
	it.call.Arguments = &none
	if known && tool.custom {
		prefix, it.open, it.custom = "ctc_", customCallItem, &customText{}
		it.call.Arguments, it.call.Input = nil, &none
	}
	it.call.Type, it.call.ID = it.open, it.id(prefix)
}

// shut closes the open item.
func (it *responseItems) shut() error {
	var item any
	var err error
	switch {
	case it.open == "":
		return nil
	case it.inCall():
		item, err = it.shutCall()
	default:
		item, err = it.shutText()
	}
	if err != nil {
		return err
	}
	if err := it.tell("response.output_item.done", map[string]any{"output_index": len(it.done), "item": item}); err != nil {
		return err
	}
	it.done, it.open = append(it.done, item), ""
	return nil
}

func (it *responseItems) shutCall() (any, error) {
	it.call.Status = "completed"
	if it.custom != nil {
		var whole map[string]string
		it.call.Input = new(it.input.String())
		if json.Unmarshal([]byte(it.text.String()), &whole) == nil {
			it.call.Input = new(whole[customInput])
		}
		return it.call, it.tell("response.custom_tool_call_input.done", it.at("", map[string]any{"input": it.call.Input}))
	}
	text := it.text.String()
	it.call.Arguments = &text
	return it.call, it.tell("response.function_call_arguments.done", it.at("", map[string]any{"name": it.call.Name, "arguments": text}))
}

func (it *responseItems) shutText() (any, error) {
	k, whole := textKinds[it.open], it.item("completed")
	fields := it.part(map[string]any{"text": it.text.String()})
	if it.open == "message" {
		it.probs, it.logprobs = append(it.probs, it.logprobs...), nil
		fields["logprobs"] = append([]chatLogprob{}, it.probs...)
	}
	if err := it.tell(k.event+".done", fields); err != nil {
		return nil, err
	}
	if err := it.tell("response.content_part.done", it.part(map[string]any{"part": it.content()})); err != nil {
		return nil, err
	}
	whole.Content = append(whole.Content, it.content())
	if it.open == "reasoning" && it.x.f.includes(includeEncrypted) {
		whole.Encrypted = marshalled(sealed(it.text.String()))
	}
	return whole, nil
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
