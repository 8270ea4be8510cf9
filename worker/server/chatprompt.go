package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"roundhouse/worker/template"
	"roundhouse/worker/tokenizer"
)

// maxMessages bounds a chat; a context has no room for more anyway.
const maxMessages = 10000

// renderChat makes the prompt of a chat. It also returns the text of the last
// message, which may be echoed or continued.
func (s *Server) renderChat(f *chatRequest) (tokens []int32, last string, err *apiError) {
	if s.cfg.Template == nil {
		return nil, "", badValue("messages", "this model has no chat template; use /v1/completions, or start the worker with --chat-template FILE")
	}
	messages, last, err := readMessages(f.Messages)
	if err != nil {
		return nil, "", err
	}
	add := value(f.AddGenerationPrompt, true)
	if f.ContinueFinal && f.AddGenerationPrompt != nil && add {
		return nil, "", badValue("continue_final_message", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
	}
	vars := map[string]any{}
	if err := s.templateArguments(vars, f); err != nil {
		return nil, "", err
	}
	vars["messages"], vars["add_generation_prompt"] = messages, add && !f.ContinueFinal
	segments, renderErr := s.cfg.Template(vars)
	if renderErr != nil {
		return nil, "", templateError(renderErr)
	}
	if f.ContinueFinal {
		segments = cutAfter(segments, strings.TrimSpace(last))
	}
	total := 0
	for _, seg := range segments {
		total += len(seg.Text)
	}
	if total > s.cfg.MaxModelLen*s.longest {
		return nil, "", s.checkLength(strings.Repeat("x", total))
	}
	tokens = s.cfg.Tokenizer.EncodeSegments(segments, tokenizer.EncodeOptions{AddSpecial: f.AddSpecial})
	return tokens, last, nil
}

// templateError tells a template's own complaint to the client as it is.
func templateError(err error) *apiError {
	var raised *template.RaisedError
	if errors.As(err, &raised) {
		return badValue("messages", "%s", raised.Message)
	}
	return badValue("messages", "the chat template failed: %v", err)
}

// templateArguments sets what the request passes to the template besides the
// messages. What the server itself sets cannot be passed.
func (s *Server) templateArguments(vars map[string]any, f *chatRequest) *apiError {
	set := func(name string, raw json.RawMessage) *apiError {
		v, err := template.FromJSON(raw)
		if err != nil {
			return badValue(name, "%s: %v", name, err)
		}
		vars[name] = v
		return nil
	}
	for name, raw := range s.cfg.TemplateDefaults {
		if err := set(name, raw); err != nil {
			return err
		}
	}
	for name, raw := range f.TemplateArguments {
		switch name {
		case "messages", "tools", "documents", "chat_template", "tokenize", "add_generation_prompt", "continue_final_message", "bos_token", "eos_token":
			return badValue("chat_template_kwargs", "chat_template_kwargs cannot set `%s`", name)
		}
		if err := set(name, raw); err != nil {
			return err
		}
	}
	if f.ReasoningEffort != nil {
		vars["reasoning_effort"] = *f.ReasoningEffort
	}
	vars["bos_token"], vars["eos_token"] = template.Literal(s.cfg.BOSToken), template.Literal(s.cfg.EOSToken)
	if f.Documents != nil {
		if err := set("documents", f.Documents); err != nil {
			return err
		}
	}
	if word, _ := decoded[string](f.ToolChoice); f.Tools == nil || s.cfg.HideTools && word == "none" {
		vars["tools"] = nil
		return nil
	}
	return set("tools", f.Tools)
}

// readMessages reads the messages into the values of a template: text parts
// joined, arguments of tool calls parsed.
func readMessages(raw json.RawMessage) (messages []any, last string, err *apiError) {
	v, convErr := template.FromJSON(raw)
	if convErr != nil {
		return nil, "", badShape("list_type", "messages", "Input should be a valid list")
	}
	messages, ok := v.([]any)
	if !ok {
		return nil, "", badShape("list_type", "messages", "Input should be a valid list")
	}
	if len(messages) == 0 || len(messages) > maxMessages {
		return nil, "", badValue("messages", "messages must have 1 to %d entries, got %d", maxMessages, len(messages))
	}
	for i, m := range messages {
		d, ok := m.(*template.Dict)
		if !ok {
			return nil, "", badShape("dict_type", fmt.Sprintf("messages.%d", i), "Input should be a valid dictionary")
		}
		if last, err = readMessage(d, i); err != nil {
			return nil, "", err
		}
	}
	return messages, last, nil
}

func readMessage(d *template.Dict, i int) (string, *apiError) {
	role, _ := d.Get("role")
	if s, ok := role.(string); !ok || s == "" || len(s) > 64 {
		return "", badShape("missing", fmt.Sprintf("messages.%d.role", i), "Field required")
	}
	text := ""
	content, has := d.Get("content")
	switch c := content.(type) {
	case nil:
		if _, calls := d.Get("tool_calls"); !has && !calls {
			return "", badShape("missing", fmt.Sprintf("messages.%d.content", i), "Field required")
		}
	case string:
		text = c
	case []any:
		var err *apiError
		if text, err = joinParts(c, i); err != nil {
			return "", err
		}
		d.Set("content", text)
	default:
		return "", badShape("string_type", fmt.Sprintf("messages.%d.content", i), "Input should be a valid string")
	}
	if r, ok := d.Get("reasoning"); ok {
		if _, has := d.Get("reasoning_content"); !has {
			d.Set("reasoning_content", r) // templates know it by its older name
		}
	}
	return text, readCalls(d, i)
}

// joinParts makes one text of a content in parts.
func joinParts(parts []any, i int) (string, *apiError) {
	var texts []string
	for _, p := range parts {
		if s, ok := p.(string); ok {
			texts = append(texts, s)
			continue
		}
		d, ok := p.(*template.Dict)
		if !ok {
			return "", badShape("dict_type", fmt.Sprintf("messages.%d.content", i), "Input should be a valid dictionary")
		}
		kind, _ := d.Get("type")
		switch kind {
		case "thinking", "redacted_thinking":
			continue // what the model thought before is no part of the conversation
		case "text", "input_text", "output_text", "refusal":
			field := "text"
			if kind == "refusal" {
				field = "refusal"
			}
			s, _ := d.Get(field)
			t, ok := s.(string)
			if !ok {
				return "", badShape("missing", fmt.Sprintf("messages.%d.content", i), "a part of type text needs the field text")
			}
			texts = append(texts, t)
		default:
			return "", badValue("messages", "message %d has a part of type %.64v, and this model reads text only", i, kind)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// readCalls parses the arguments of an assistant's tool calls, which clients
// send as text and templates print as JSON.
func readCalls(d *template.Dict, i int) *apiError {
	calls, _ := d.Get("tool_calls")
	list, _ := calls.([]any)
	for _, c := range list {
		call, ok := c.(*template.Dict)
		if !ok {
			return badShape("dict_type", fmt.Sprintf("messages.%d.tool_calls", i), "Input should be a valid dictionary")
		}
		fn, _ := call.Get("function")
		f, ok := fn.(*template.Dict)
		if !ok {
			return badShape("missing", fmt.Sprintf("messages.%d.tool_calls.function", i), "Field required")
		}
		arguments, _ := f.Get("arguments")
		text, ok := arguments.(string)
		if !ok {
			continue
		}
		if strings.TrimSpace(text) == "" {
			text = "{}"
		}
		v, err := template.FromJSON([]byte(text))
		if err != nil {
			return badValue("messages", "the arguments of a tool call in message %d are not JSON", i)
		}
		f.Set("arguments", v)
	}
	return nil
}

// cutAfter ends the prompt behind the last place where text stands, so that
// the model goes on with it.
func cutAfter(segments []tokenizer.Segment, text string) []tokenizer.Segment {
	whole := ""
	for _, s := range segments {
		whole += s.Text
	}
	at := strings.LastIndex(whole, text)
	if at < 0 {
		return segments
	}
	left := at + len(text)
	var out []tokenizer.Segment
	for _, s := range segments {
		if len(s.Text) >= left {
			s.Text = s.Text[:left]
			return append(out, s)
		}
		left -= len(s.Text)
		out = append(out, s)
	}
	return out
}
