package server

import (
	"encoding/json"
	"fmt"
)

// inputBlock is one block of a message's content.
type inputBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	ToolUse string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
}

// messagesInput makes a chat of system and messages.
func messagesInput(f *messagesRequest) (json.RawMessage, *apiError) {
	type message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	given, ok := decoded[[]message](f.Messages)
	if !ok {
		return nil, badShape("list_type", "messages", "Input should be a valid list")
	}
	if len(given) == 0 {
		return nil, badValue("messages", "messages: at least one message is required")
	}
	var list []chatMessage
	if f.System != nil {
		list = append(list, chatMessage{Role: "system", Content: f.System})
	}
	for i, m := range given {
		if m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
			return nil, badValue("messages", "messages.%d.role is %.32q; want user or assistant", i, m.Role)
		}
		if m.Content == nil {
			return nil, badShape("missing", fmt.Sprintf("messages.%d.content", i), "Field required")
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
	return marshalled(list), nil
}

// turnBlocks makes messages of the blocks of one: what tools brought is a
// message of its own each, before the text.
func turnBlocks(role string, blocks []inputBlock, i int) ([]chatMessage, *apiError) {
	var out []chatMessage
	own := chatMessage{Role: role}
	var text []map[string]string
	for k, b := range blocks {
		switch {
		case b.Type == "text":
			text = append(text, map[string]string{"type": "text", "text": b.Text})
		case b.Type == "thinking" || b.Type == "redacted_thinking": // no part of the conversation
		case b.Type == "tool_use" && role == "assistant":
			if b.ID == "" || b.Name == "" {
				return nil, badValue("messages", "messages.%d.content.%d, a tool_use, needs id and name", i, k)
			}
			arguments := b.Input
			if arguments == nil {
				arguments = json.RawMessage("{}")
			}
			own.Calls = append(own.Calls, chatCall{ID: b.ID, Type: "function", Function: map[string]any{"name": b.Name, "arguments": arguments}})
		case b.Type == "tool_result" && role == "user":
			if b.ToolUse == "" {
				return nil, badValue("messages", "messages.%d.content.%d, a tool_result, needs tool_use_id", i, k)
			}
			result := chatMessage{Role: "tool", CallID: b.ToolUse, Content: ""}
			if b.Content != nil {
				result.Content = b.Content
			}
			out = append(out, result)
		default:
			return nil, badValue("messages", "messages.%d.content.%d has type %.64q, and this model reads text, tool_use of the assistant and tool_result of the user only", i, k, b.Type)
		}
	}
	if text != nil || own.Calls != nil || len(out) == 0 {
		own.Content = text
		if text == nil {
			own.Content = ""
		}
		out = append(out, own)
	}
	return out, nil
}

// messagesTools turns tools and tool_choice into those of a chat.
func messagesTools(f *messagesRequest, cr *chatRequest) *apiError {
	list, ok := decoded[[]struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	}](f.Tools)
	if f.Tools != nil && !ok {
		return badShape("list_type", "tools", "Input should be a valid list")
	}
	if f.Tools == nil && f.ToolChoice == nil || len(list) == 0 && f.ToolChoice == nil {
		return nil
	}
	var tools []map[string]any
	for i, t := range list {
		if t.Type != "" && t.Type != "custom" {
			return notImplemented("tool %d has type %.64q, and this engine has tools of the client (custom) only", i, t.Type)
		}
		fn := map[string]any{"name": t.Name}
		if t.Description != "" {
			fn["description"] = t.Description
		}
		if t.Schema != nil {
			fn["parameters"] = t.Schema
		}
		tools = append(tools, map[string]any{"type": "function", "function": fn})
	}
	if tools != nil {
		cr.Tools = marshalled(tools)
	}
	if f.ToolChoice == nil {
		return nil
	}
	choice, ok := decoded[struct {
		Type string `json:"type"`
		Name string `json:"name"`
		One  bool   `json:"disable_parallel_tool_use"`
	}](f.ToolChoice)
	if !ok {
		return badShape("dict_type", "tool_choice", "Input should be a valid dictionary")
	}
	cr.ParallelToolCalls = new(!choice.One)
	switch choice.Type {
	case "auto", "none":
		cr.ToolChoice = marshalled(choice.Type)
	case "any":
		cr.ToolChoice = marshalled("required")
	case "tool":
		cr.ToolChoice = marshalled(map[string]any{"type": "function", "function": map[string]string{"name": choice.Name}})
	default:
		return badValue("tool_choice", "tool_choice.type is %.32q; want auto, any, tool or none", choice.Type)
	}
	return nil
}
