package server

import (
	"encoding/json"
	"fmt"
	"strings"
)

// inputMessage is one message of a conversation.
type inputMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// inputBlock is one block of a message's content.
type inputBlock struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	ToolUse  string          `json:"tool_use_id"`
	Content  json.RawMessage `json:"content"`
	Source   json.RawMessage `json:"source"`
}

// billing begins a block that Claude Code puts into its system prompt. It has a
// number of its own in every request, with which no prompt would ever begin as
// another did.
const billing = "x-anthropic-billing-header"

// systemText is the text of a system prompt, or of a system message.
func systemText(raw json.RawMessage) string {
	if text, ok := decoded[string](raw); ok {
		if strings.HasPrefix(text, billing) {
			return ""
		}
		return text
	}
	var out strings.Builder
	blocks, _ := decoded[[]inputBlock](raw)
	for _, b := range blocks {
		if b.Type == "text" && !strings.HasPrefix(b.Text, billing) {
			out.WriteString(b.Text)
		}
	}
	return out.String()
}

// messagesInput makes a chat of system and messages. Where the model's template
// wants the system's message first and once, all system messages become one.
func messagesInput(f *messagesRequest, systemFirst bool) (json.RawMessage, *apiError) {
	given, ok := decoded[[]inputMessage](f.Messages)
	if !ok {
		return nil, badShape("list_type", "body.messages", "Input should be a valid list")
	}
	if len(given) == 0 {
		return nil, badValue("messages", "messages: at least one message is required")
	}
	if _, ok := decoded[string](f.System); f.System != nil && !ok {
		if _, ok := decoded[[]inputBlock](f.System); !ok {
			return nil, badShape("string_type", "body.system", "Input should be a valid string or a list of blocks")
		}
	}
	var list []chatMessage
	var system strings.Builder
	system.WriteString(systemText(f.System))
	for i, m := range given {
		if err := oneOf(&m.Role, at("body.messages", i)+".role", "user", "assistant", "system"); err != nil {
			return nil, err
		}
		if m.Content == nil {
			return nil, badShape("missing", at("body.messages", i)+".content", "Field required")
		}
		if m.Role == "system" {
			text := systemText(m.Content)
			switch {
			case systemFirst:
				system.WriteString(text)
			case text != "":
				list = append(list, chatMessage{Role: "system", Content: text})
			}
			continue
		}
		blocks, ok := decoded[[]inputBlock](m.Content)
		if !ok {
			list = append(list, chatMessage{Role: m.Role, Content: m.Content})
			continue
		}
		turned, err := turnBlocks(m.Role, blocks, i)
		if err != nil {
			return nil, err
		}
		list = append(list, turned...)
	}
	if system.Len() > 0 {
		list = append([]chatMessage{{Role: "system", Content: system.String()}}, list...)
	}
	return marshalled(list), nil
}

// turnBlocks makes messages of the blocks of one: what tools brought is a
// message of its own each, before the text.
func turnBlocks(role string, blocks []inputBlock, i int) ([]chatMessage, *apiError) {
	var out []chatMessage
	own := chatMessage{Role: role}
	var text []map[string]any
	for k, b := range blocks {
		switch {
		case b.Type == "text":
			if b.Text != "" {
				text = append(text, map[string]any{"type": "text", "text": b.Text})
			}
		case b.Type == "image":
			text = append(text, map[string]any{"type": "image", "source": b.Source})
		case b.Type == "thinking":
			own.Reasoning = joined(own.Reasoning, b.Thinking)
		case b.Type == "redacted_thinking" || b.Type == "tool_reference": // nothing that the model could read
		case b.Type == "tool_use":
			arguments := b.Input
			if arguments == nil {
				arguments = json.RawMessage("{}")
			}
			own.Calls = append(own.Calls, chatCall{ID: b.ID, Type: "function", Function: map[string]any{"name": b.Name, "arguments": arguments}})
		case b.Type == "tool_result" && role == "user":
			out = append(out, chatMessage{Role: "tool", CallID: b.ToolUse, Content: resultContent(b.Content)})
		case b.Type == "tool_result":
			text = append(text, map[string]any{"type": "text", "text": "Tool result: " + fmt.Sprint(resultContent(b.Content))})
		default:
			return nil, badShape("literal_error", at(at("body.messages", i)+".content", k)+".type",
				fmt.Sprintf("this model reads blocks of type text, thinking, tool_use and tool_result, not %s", printable(b.Type, 64)))
		}
	}
	if text != nil {
		own.Content = text
	}
	if role != "user" || text != nil {
		out = append(out, own)
	}
	return out, nil
}

// resultContent is what a tool brought: a text, or blocks of which those that
// only name a tool say nothing.
func resultContent(raw json.RawMessage) any {
	if raw == nil {
		return ""
	}
	blocks, ok := decoded[[]map[string]json.RawMessage](raw)
	if !ok {
		return raw
	}
	kept := []map[string]json.RawMessage{}
	for _, b := range blocks {
		if string(b["type"]) != `"tool_reference"` {
			kept = append(kept, b)
		}
	}
	return kept
}

// anthropicTool is a tool as this API has it.
type anthropicTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      *bool           `json:"strict"`
}

// messagesTools turns tools and tool_choice into those of a chat. Tools that
// Anthropic's servers run themselves (search, interpreters) come without a
// schema and are left out: the model never calls them.
func messagesTools(f *messagesRequest, cr *chatRequest) *apiError {
	list, ok := decoded[[]anthropicTool](f.Tools)
	if f.Tools != nil && !ok {
		return badShape("list_type", "body.tools", "Input should be a valid list")
	}
	var tools []map[string]any
	for i, t := range list {
		if t.Type != "" && t.Type != "custom" && t.Schema == nil {
			continue
		}
		schema, ok := decoded[map[string]json.RawMessage](t.Schema)
		if !ok || schema == nil {
			return badShape("missing", at("body.tools", i)+".input_schema", "Field required")
		}
		fn := map[string]any{"name": t.Name, "description": t.Description, "parameters": withType(t.Schema, schema)}
		if t.Strict != nil {
			fn["strict"] = *t.Strict
		}
		tools = append(tools, map[string]any{"type": "function", "function": fn})
	}
	if tools != nil {
		cr.Tools = marshalled(tools)
	}
	return messagesChoice(f, cr)
}

// withType adds to a schema that it is one of an object, unless it says what it
// is of.
func withType(raw json.RawMessage, schema map[string]json.RawMessage) json.RawMessage {
	if _, ok := schema["type"]; ok {
		return raw
	}
	if len(schema) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	open := strings.TrimSuffix(strings.TrimSpace(string(raw)), "}")
	return json.RawMessage(open + `,"type":"object"}`)
}

func messagesChoice(f *messagesRequest, cr *chatRequest) *apiError {
	if f.ToolChoice == nil {
		return nil
	}
	choice, ok := decoded[struct {
		Type string `json:"type"`
		Name string `json:"name"`
		One  bool   `json:"disable_parallel_tool_use"`
	}](f.ToolChoice)
	if !ok {
		return badShape("dict_type", "body.tool_choice", "Input should be a valid dictionary")
	}
	if err := oneOf(&choice.Type, "body.tool_choice.type", "auto", "any", "tool", "none"); err != nil {
		return err
	}
	cr.ParallelToolCalls = new(!choice.One)
	word := map[string]string{"auto": "auto", "none": "none", "any": "required"}[choice.Type]
	switch {
	case choice.Type == "tool" && choice.Name == "":
		return badShape("value_error", "body.tool_choice", "Value error, tool_choice.name is required when type is 'tool'")
	case choice.Type == "tool":
		cr.ToolChoice = marshalled(map[string]any{"type": "function", "function": map[string]string{"name": choice.Name}})
	case cr.Tools == nil: // there is nothing to choose from
	default:
		cr.ToolChoice = marshalled(word)
	}
	return nil
}
