package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// inputItem is one entry of input: a message, what the model thought, a call
// that it made, or what the call came to.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Status    string          `json:"status"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
	CallID    string          `json:"call_id"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
}

// chatMessage is a message as chats have it.
type chatMessage struct {
	Role      any        `json:"role"`
	Content   any        `json:"content,omitempty"`
	Reasoning *string    `json:"reasoning,omitempty"`
	Calls     []chatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

// chatCall is a call in a message of a chat.
type chatCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function map[string]any `json:"function"`
}

// messages makes a chat of the instructions, of what was said before, and of
// the input; it reports whether the last of it is to be gone on with.
func (f *responsesRequest) messages() (list []json.RawMessage, unfinished bool, err *apiError) {
	if value(f.Instructions, "") != "" {
		list = append(list, marshalled(chatMessage{Role: "system", Content: *f.Instructions}))
	}
	fresh, unfinished, err := f.conversation()
	for _, m := range append(f.history[:len(f.history):len(f.history)], fresh...) {
		list = append(list, m)
	}
	return list, unfinished, err
}

// conversation makes a chat of the input alone.
func (f *responsesRequest) conversation() (list []json.RawMessage, unfinished bool, err *apiError) {
	if text, ok := decoded[string](f.Input); ok {
		return []json.RawMessage{marshalled(chatMessage{Role: "user", Content: text})}, false, nil
	}
	items, ok := decoded[[]inputItem](f.Input)
	if !ok {
		return nil, false, badShape("list_type", "body.input", "Input should be a valid string or a list of messages, calls and their outputs")
	}
	if len(items) == 0 && len(f.history) == 0 {
		return nil, false, badValue("", "input must have at least one entry")
	}
	var b itemReader
	for i := range items {
		if err := b.add(&items[i]); err != nil {
			return nil, false, err
		}
	}
	for i := range b.list {
		list = append(list, marshalled(b.list[i]))
	}
	if n := len(items); n > 0 {
		last := items[n-1]
		unfinished = (last.Status == "in_progress" || last.Status == "incomplete") && (last.Type == "reasoning" || last.Role == "assistant")
	}
	return list, unfinished, nil
}

// itemReader makes messages of items. What the model thought, said and called
// in one turn are items of their own here and one message there.
type itemReader struct{ list []chatMessage }

// turn is the model's message that is being put together; nil: none.
func (b *itemReader) turn() *chatMessage {
	if n := len(b.list); n > 0 && b.list[n-1].Role == "assistant" {
		return &b.list[n-1]
	}
	return nil
}

func (b *itemReader) add(item *inputItem) *apiError {
	switch item.Type {
	case "", "message":
		return b.message(item)
	case "reasoning":
		b.thought(item.thought())
	case "function_call", "custom_tool_call":
		if item.CallID == "" || item.Name == "" {
			return badShape("missing", "body.input", "an item of type "+item.Type+" needs call_id and name")
		}
		b.call(item)
	case "function_call_output", "custom_tool_call_output":
		if item.CallID == "" || item.Output == nil {
			return badShape("missing", "body.input", "an item of type "+item.Type+" needs call_id and output")
		}
		b.list = append(b.list, chatMessage{Role: "tool", CallID: item.CallID, Content: item.Output})
	default:
		return badValue("input", "Unsupported input item type: %s", printable(item.Type, 64))
	}
	return nil
}

func (b *itemReader) message(item *inputItem) *apiError {
	if item.Role == "" {
		return badShape("missing", "body.input", "Field required")
	}
	var content any
	switch {
	case item.Content != nil:
		content = item.Content
	case item.Role != "assistant":
		return badShape("missing", "body.input", "Field required")
	}
	if t := b.turn(); t != nil && item.Role == "assistant" && t.Content == nil {
		t.Content = content
		return nil
	}
	b.list = append(b.list, chatMessage{Role: item.Role, Content: content})
	return nil
}

func (b *itemReader) thought(text string) {
	if t := b.turn(); t != nil && t.Reasoning == nil {
		t.Reasoning = &text
		return
	}
	b.list = append(b.list, chatMessage{Role: "assistant", Reasoning: &text})
}

func (b *itemReader) call(item *inputItem) {
	name, arguments := item.Name, item.Arguments
	if item.Namespace != "" {
		name = flatName(item.Namespace, name)
	}
	if item.Type == "custom_tool_call" {
		arguments = string(marshalled(map[string]string{customInput: item.Input}))
	}
	call := chatCall{ID: item.CallID, Type: "function", Function: map[string]any{"name": name, "arguments": arguments}}
	if t := b.turn(); t != nil {
		t.Calls = append(t.Calls, call)
		return
	}
	b.list = append(b.list, chatMessage{Role: "assistant", Calls: []chatCall{call}})
}

// ownThought begins what stands for a reasoning's text where a client asked for
// it in a form that it keeps without reading it.
const ownThought = "roundhouse:"

// sealed is a reasoning's text as a client without a stored answer gets it, to
// be sent back with the next request.
func sealed(text string) string {
	return base64.StdEncoding.EncodeToString([]byte(ownThought + text))
}

// thought is the text of a reasoning item: its content, what was sealed here,
// or else its summary. What another server sealed says nothing.
func (item *inputItem) thought() string {
	if text := partTexts(item.Content); text != "" {
		return text
	}
	if raw, err := base64.StdEncoding.DecodeString(item.Encrypted); err == nil {
		if text, ok := strings.CutPrefix(string(raw), ownThought); ok {
			return strings.ToValidUTF8(text, "\uFFFD")
		}
	}
	return partTexts(item.Summary)
}

// partTexts joins the texts of an item's parts.
func partTexts(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	parts, _ := decoded[[]struct {
		Text string `json:"text"`
	}](raw)
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

// at is the place of an entry in a list of the body.
func at(list string, i int) string { return fmt.Sprintf("%s.%d", list, i) }

// marshalled writes what was read, or made of what was read.
func marshalled(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("BUG: JSON that was read cannot be written")
	}
	return data
}
