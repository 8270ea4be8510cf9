package server

import "encoding/json"

// inputItem is one entry of input: a message, a call that the model made, or
// what it came to.
type inputItem struct {
	Type      string          `json:"type"`
	Role      json.RawMessage `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// chatMessage is a message as chats have it.
type chatMessage struct {
	Role    any        `json:"role"`
	Content any        `json:"content"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

// chatCall is a call in a message of a chat.
type chatCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function map[string]any `json:"function"`
}

// responseMessages makes a chat of instructions and input.
func responseMessages(f *responsesRequest) (json.RawMessage, *apiError) {
	var list []chatMessage
	if f.Instructions != nil && *f.Instructions != "" {
		list = append(list, chatMessage{Role: "system", Content: *f.Instructions})
	}
	if text, ok := decoded[string](f.Input); ok {
		return marshalled(append(list, chatMessage{Role: "user", Content: text})), nil
	}
	items, ok := decoded[[]inputItem](f.Input)
	if !ok || len(items) == 0 {
		return nil, badValue("input", "input must be a string or a non-empty list of messages, calls and their outputs")
	}
	for i, item := range items {
		switch item.Type {
		case "", "message":
			list = append(list, chatMessage{Role: item.Role, Content: item.Content})
		case "reasoning": // what the model thought before is no part of the conversation
		case "function_call":
			if item.CallID == "" || item.Name == "" {
				return nil, badValue("input", "entry %d of input, a function_call, needs call_id and name", i)
			}
			call := chatCall{ID: item.CallID, Type: "function", Function: map[string]any{"name": item.Name, "arguments": item.Arguments}}
			if n := len(list); n > 0 && list[n-1].isAssistant() {
				list[n-1].Calls = append(list[n-1].Calls, call)
			} else {
				list = append(list, chatMessage{Role: "assistant", Calls: []chatCall{call}})
			}
		case "function_call_output":
			if item.CallID == "" || item.Output == nil {
				return nil, badValue("input", "entry %d of input, a function_call_output, needs call_id and output", i)
			}
			list = append(list, chatMessage{Role: "tool", CallID: item.CallID, Content: item.Output})
		default:
			return nil, badValue("input", "entry %d of input has type %.64q, and this engine reads messages, function_call and function_call_output", i, item.Type)
		}
	}
	return marshalled(list), nil
}

// isAssistant says that the model wrote the message, so that its calls belong
// there.
func (m *chatMessage) isAssistant() bool {
	raw, ok := m.Role.(json.RawMessage)
	return m.Role == "assistant" || ok && string(raw) == `"assistant"`
}

// marshalled writes what was read, or made of what was read.
func marshalled(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("BUG: JSON that was read cannot be written")
	}
	return data
}

// responseTools turns the flat tools of this API into those of chats.
func responseTools(tools, choice json.RawMessage) (json.RawMessage, json.RawMessage, *apiError) {
	list, ok := decoded[[]map[string]json.RawMessage](tools)
	if tools != nil && !ok {
		return nil, nil, badShape("list_type", "tools", "Input should be a valid list")
	}
	var out []map[string]any
	for i, t := range list {
		if kind, _ := decoded[string](t["type"]); kind != "function" {
			e := notImplemented("tool %d has type %.64q, and this engine has function only", i, kind)
			e.Param = "tools"
			return nil, nil, e
		}
		delete(t, "type")
		out = append(out, map[string]any{"type": "function", "function": t})
	}
	if len(out) == 0 {
		if word, _ := decoded[string](choice); word == "auto" || word == "none" {
			choice = nil // what clients send with no tools at all
		}
		return nil, choice, nil
	}
	if named, ok := decoded[struct{ Type, Name string }](choice); ok && choice != nil && choice[0] == '{' {
		if named.Type != "function" {
			e := notImplemented("tool_choice of type %.64q is not supported by this engine; want auto, none, required or a function", named.Type)
			e.Param = "tool_choice"
			return nil, nil, e
		}
		choice = marshalled(map[string]any{"type": "function", "function": map[string]string{"name": named.Name}})
	}
	return marshalled(out), choice, nil
}

// responseFormat turns the flat form of this API into that of chats.
func responseFormat(format json.RawMessage) json.RawMessage {
	f, ok := decoded[map[string]json.RawMessage](format)
	if !ok || string(f["type"]) != `"json_schema"` {
		return format
	}
	kind := f["type"]
	delete(f, "type")
	return marshalled(map[string]any{"type": kind, "json_schema": f})
}
