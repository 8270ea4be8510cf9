package server

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"roundhouse/worker"
	"roundhouse/worker/template"
	"roundhouse/worker/tokenizer"
)

// maxMessages bounds a chat; a context has no room for more anyway.
const maxMessages = 10000

// prompt is what a chat becomes for the model.
type prompt struct {
	tokens   []int32
	segments []tokenizer.Segment
	last     lastMessage
	goesOn   bool // the last message is gone on with
	media    []worker.Item
}

// lastMessage is what a chat ends with.
type lastMessage struct{ role, text string }

// text is the prompt as the template wrote it.
func (p *prompt) text() string {
	var out strings.Builder
	for _, s := range p.segments {
		out.WriteString(s.Text)
	}
	return out.String()
}

// ending is what the template itself wrote behind the last word that came from
// outside; of a message that is gone on with, the message so far.
func (p *prompt) ending() string {
	if p.goesOn && p.last.role == "assistant" {
		return p.last.text
	}
	tail := ""
	for _, s := range slices.Backward(p.segments) {
		if s.Content {
			break
		}
		tail = s.Text + tail
	}
	return tail
}

// renderChat makes the prompt of a chat.
func (s *Server) renderChat(f *chatRequest) (*prompt, *apiError) {
	if s.cfg.Template == nil {
		return nil, badValue("messages", "this model has no chat template; use /v1/completions, or start the worker with --chat-template FILE")
	}
	pictures := &gallery{sight: s.cfg.Sight}
	messages, last, err := readMessages(f.Messages, pictures)
	if err != nil {
		return nil, err
	}
	add := value(f.AddGenerationPrompt, true)
	if f.ContinueFinal && f.AddGenerationPrompt != nil && add {
		return nil, badValue("", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
	}
	vars := map[string]any{}
	if err := s.templateArguments(vars, f); err != nil {
		return nil, err
	}
	vars["messages"], vars["add_generation_prompt"] = s.withoutDevelopers(messages), add && !f.ContinueFinal
	segments, renderErr := s.cfg.Template(vars)
	if renderErr != nil {
		return nil, templateError(renderErr)
	}
	if f.ContinueFinal {
		segments = cutAfter(segments, strings.TrimSpace(last.text))
	}
	total := 0
	for _, seg := range segments {
		total += len(seg.Text)
	}
	if total > s.cfg.MaxModelLen*s.longest {
		return nil, s.checkLength(strings.Repeat("x", total))
	}
	tokens := s.cfg.Tokenizer.EncodeSegments(segments, tokenizer.EncodeOptions{AddSpecial: f.AddSpecial})
	p := &prompt{segments: segments, last: last, goesOn: f.ContinueFinal}
	if p.tokens, p.media, err = pictures.hang(tokens, s.cfg.MaxModelLen); err != nil {
		return nil, err
	}
	return p, nil
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
	if effort := f.ReasoningEffort; effort != nil {
		vars["reasoning_effort"] = *effort
		if _, set := f.TemplateArguments["enable_thinking"]; !set {
			vars["enable_thinking"] = *effort != "none"
		}
	}
	vars["bos_token"], vars["eos_token"] = template.Literal(s.cfg.BOSToken), template.Literal(s.cfg.EOSToken)
	if f.Documents != nil {
		if _, ok := decoded[[]map[string]string](f.Documents); !ok {
			return badShape("list_type", "body.documents", "Input should be a valid list of dictionaries of texts")
		}
		if err := set("documents", f.Documents); err != nil {
			return err
		}
	}
	vars["tools"] = nil
	if word, _ := decoded[string](f.ToolChoice); f.Tools == nil || s.cfg.HideTools && word == "none" {
		return nil
	}
	tools, err := templateTools(f.Tools)
	vars["tools"] = tools
	return err
}

// templateTools brings tools into the form that templates print: these fields
// in this order, as vLLM has them, whatever the client sent.
func templateTools(raw json.RawMessage) ([]any, *apiError) {
	v, err := template.FromJSON(raw)
	list, ok := v.([]any)
	if err != nil || !ok {
		return nil, badShape("list_type", "body.tools", "Input should be a valid list")
	}
	out := make([]any, len(list))
	for i, t := range list {
		tool, _ := t.(*template.Dict)
		var fn *template.Dict
		if tool != nil {
			given, _ := tool.Get("function")
			fn, _ = given.(*template.Dict)
		}
		if fn == nil {
			return nil, badShape("missing", at("body.tools", i)+".function", "Field required")
		}
		function, whole := template.NewDict(), template.NewDict()
		for _, name := range []string{"name", "description", "parameters"} {
			v, _ := fn.Get(name)
			function.Set(name, v)
		}
		for _, name := range []string{"strict", "defer_loading"} {
			if v, _ := fn.Get(name); v != nil {
				function.Set(name, v)
			}
		}
		whole.Set("type", "function")
		whole.Set("function", function)
		out[i] = whole
	}
	return out, nil
}

// readMessages reads the messages into the values of a template: text parts
// joined, arguments of tool calls parsed.
func readMessages(raw json.RawMessage, pictures *gallery) (messages []any, last lastMessage, err *apiError) {
	v, convErr := template.FromJSON(raw)
	messages, ok := v.([]any)
	if convErr != nil || !ok {
		return nil, last, badShape("list_type", "body.messages", "Input should be a valid list")
	}
	if len(messages) == 0 || len(messages) > maxMessages {
		return nil, last, badValue("", "messages must have 1 to %d entries, got %d", maxMessages, len(messages))
	}
	for i, m := range messages {
		d, ok := m.(*template.Dict)
		if !ok {
			return nil, last, badShape("dict_type", at("body.messages", i), "Input should be a valid dictionary")
		}
		if last, err = readMessage(d, i, pictures); err != nil {
			return nil, last, err
		}
	}
	return messages, last, nil
}

func readMessage(d *template.Dict, i int, pictures *gallery) (last lastMessage, err *apiError) {
	role, _ := d.Get("role")
	var ok bool
	if last.role, ok = role.(string); !ok || last.role == "" || len(last.role) > 64 {
		return last, badShape("missing", at("body.messages", i)+".role", "Field required")
	}
	content, _ := d.Get("content")
	switch c := content.(type) {
	case nil: // the template sees what templates of its kind expect
	case string:
		last.text = c
	case []any:
		parts, text, err := pictures.parts(c, i)
		if err != nil {
			return last, err
		}
		last.text = text
		d.Set("content", parts)
	default:
		return last, contentShape(c, i)
	}
	thought, _ := d.Get("reasoning")
	if older, _ := d.Get("reasoning_content"); thought == nil {
		thought = older
	}
	if thought != nil { // templates know it by either name
		d.Set("reasoning", thought)
		d.Set("reasoning_content", thought)
	}
	return last, readCalls(d, i)
}

// contentShape refuses a content that is neither a text nor a list of parts.
func contentShape(content any, i int) *apiError {
	if _, ok := content.(*template.Dict); ok {
		return badValue("", "the content of message %d is an object; want a text or a list of parts", i)
	}
	return badShape("string_type", at("body.messages", i)+".content", "Input should be a valid string")
}

// readCalls parses the arguments of an assistant's tool calls, which clients
// send as text and templates print as JSON. What is no object becomes an empty
// one: it lies in the past of a conversation that could never go on otherwise.
func readCalls(d *template.Dict, i int) *apiError {
	calls, _ := d.Get("tool_calls")
	list, ok := calls.([]any)
	if ok && len(list) == 0 {
		d.Delete("tool_calls") // templates ask whether there are any
	}
	for _, c := range list {
		call, ok := c.(*template.Dict)
		if !ok {
			return badShape("dict_type", at("body.messages", i)+".tool_calls", "Input should be a valid dictionary")
		}
		fn, _ := call.Get("function")
		f, ok := fn.(*template.Dict)
		if !ok {
			return badShape("missing", at("body.messages", i)+".tool_calls.function", "Field required")
		}
		arguments, _ := f.Get("arguments")
		text, ok := arguments.(string)
		if !ok {
			continue
		}
		v, err := template.FromJSON([]byte(text))
		if _, object := v.(*template.Dict); err != nil || !object {
			v = template.NewDict()
		}
		f.Set("arguments", v)
	}
	return nil
}

// cutAfter ends the prompt behind the last place where text stands, so that
// the model goes on with it.
func cutAfter(segments []tokenizer.Segment, text string) []tokenizer.Segment {
	var whole strings.Builder
	for _, s := range segments {
		whole.WriteString(s.Text)
	}
	at := strings.LastIndex(whole.String(), text)
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
