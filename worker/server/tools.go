package server

import (
	"encoding/json"

	"roundhouse/worker/parser"
)

// Bounds of what a request may say of tools.
const (
	maxTools    = 1024
	maxToolName = 1024
)

// toolUse is what a chat allows in the way of tool calls.
type toolUse struct {
	choice string // none, auto, required or named
	tools  []tool // with named, the one
	one    bool   // at most one call in an answer
}

// tool is a function that the model may call.
type tool struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Strict     json.RawMessage `json:"strict"`
}

// check refuses values of other kinds than OpenAI documents. A tool without parameters
// may say null.
func (t *tool) check(at string) *apiError {
	switch {
	case t == nil:
		return badShape("missing", at, "Field required")
	case t.Name == "":
		return badShape("missing", at+".name", "Field required")
	case t.Parameters != nil && string(t.Parameters) != "null" && t.Parameters[0] != '{':
		return badShape("dict_type", at+".parameters", "Input should be a valid dictionary")
	}
	if string(t.Parameters) == "null" {
		t.Parameters = nil
	}
	if t.Strict == nil || string(t.Strict) == "null" {
		return nil
	}
	if _, err := readBool(t.Strict); err != nil {
		return badShape("bool_parsing", at+".strict", "Input should be a valid boolean")
	}
	return nil
}

// tools reads tools and tool_choice.
func (s *Server) tools(f *chatRequest) (toolUse, *apiError) {
	use := toolUse{choice: "none"}
	list, err := readTools(f.Tools)
	if err != nil {
		return use, err
	}
	if f.ParallelToolCalls != nil && !*f.ParallelToolCalls {
		use.one = true
	}
	use.tools = list
	if list != nil {
		use.choice = "auto"
	}
	if f.ToolChoice != nil {
		if err := use.choose(f.ToolChoice); err != nil {
			return use, err
		}
	}
	switch use.choice {
	case "none":
	case "auto":
		if s.cfg.ToolParser == "" && f.unparsed {
			use.choice = "none"
			break
		}
		if s.cfg.ToolParser == "" {
			return use, badValue("", "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set")
		}
	default:
		if s.cfg.Compile == nil {
			return use, badValue("tool_choice", "`tool_choice` other than none is not supported by this engine.")
		}
	}
	return use, nil
}

func readTools(raw json.RawMessage) ([]tool, *apiError) {
	if raw == nil {
		return nil, nil
	}
	var list []struct {
		Type     string `json:"type"`
		Function *tool  `json:"function"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil, badShape("list_type", "body.tools", "Input should be a valid list")
	}
	if len(list) == 0 {
		return nil, badValue("tools", "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.")
	}
	if len(list) > maxTools {
		return nil, badValue("tools", "at most %d tools are allowed, got %d", maxTools, len(list))
	}
	var out []tool
	for i, t := range list {
		if t.Type != "" && t.Type != "function" {
			return nil, badShape("literal_error", at("body.tools", i)+".type", "Input should be 'function'")
		}
		if err := t.Function.check(at("body.tools", i) + ".function"); err != nil {
			return nil, err
		}
		if len(t.Function.Name) > maxToolName {
			return nil, badValue("tools", "the name of tool %d may have at most %d bytes, got %d", i, maxToolName, len(t.Function.Name))
		}
		out = append(out, *t.Function)
	}
	return out, nil
}

// choose reads tool_choice: a word, or the name of one function.
func (u *toolUse) choose(raw json.RawMessage) *apiError {
	if word, ok := decoded[string](raw); ok {
		switch {
		case word == "none":
		case word != "auto" && word != "required":
			return badValue("tool_choice", "Invalid value for `tool_choice`: %.32q. Only named tools, \"none\", \"auto\" or \"required\" are supported.", word)
		case u.tools == nil:
			return badValue("tool_choice", "When using `tool_choice`, `tools` must be set.")
		}
		u.choice = word
		return nil
	}
	if raw[0] != '{' {
		return badValue("tool_choice", "Invalid value for `tool_choice`: %.32s! Only named tools, \"none\", \"auto\" or \"required\" are supported.", raw)
	}
	if u.tools == nil {
		return badValue("tool_choice", "When using `tool_choice`, `tools` must be set.")
	}
	var named struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &named) != nil || named.Function.Name == "" {
		return badValue("tool_choice.function", "Invalid value for `function` in `tool_choice`! Correct usage: `{\"type\": \"function\", \"function\": {\"name\": \"my_function\"}}`")
	}
	for _, t := range u.tools {
		if t.Name == named.Function.Name {
			u.choice, u.tools = "named", []tool{t}
			return nil
		}
	}
	return badValue("tool_choice", "The tool specified in `tool_choice` (%.64q) does not match any of the specified `tools`.", named.Function.Name)
}

// offered are the tools as parsers know them.
func (u *toolUse) offered() []parser.Tool {
	var out []parser.Tool
	for _, t := range u.tools {
		out = append(out, parser.Tool{Name: t.Name, Parameters: t.Parameters})
	}
	return out
}

// choices are tool_choice's words as parsers know them.
var choices = map[string]parser.Choice{"auto": parser.Auto, "required": parser.Required, "named": parser.Named, "none": parser.None}

// form is what an answer that must call tools is restricted to: the arguments
// of the named function, or a list of calls.
func (u *toolUse) form() Form {
	if u.choice == "required" {
		return Form{Kind: FormCalls, Calls: u.offered(), OneCall: u.one}
	}
	if p := u.tools[0].Parameters; p != nil {
		return Form{Kind: FormSchema, Schema: p}
	}
	return Form{Kind: FormObject}
}
