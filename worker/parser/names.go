package parser

import (
	"fmt"
	"slices"
	"strings"
)

// Marks are the texts between which a family thinks.
type Marks struct {
	Open, Shut string
	Always     bool // the reasoning has begun though neither the prompt nor the output says so

	answer string // the tag around what follows; "": none
	exact  bool   // line breaks beside the tag and the reasoning belong to them
	trim   bool   // line breaks at the end of the reasoning are no part of it
}

// thoughts are the reasoning parsers, by vLLM's names.
var thoughts = map[string]Marks{
	"deepseek_r1":   {Open: "<think>", Shut: "</think>", Always: true},
	"deepseek_v3":   {Open: "<think>", Shut: "</think>"},
	"ernie45":       {Open: "<think>", Shut: "</think>", Always: true, answer: "response", exact: true},
	"glm45":         {Open: "<think>", Shut: "</think>", trim: true},
	"glm47":         {Open: "<think>", Shut: "</think>", trim: true},
	"hunyuan_a13b":  {Open: "<think>", Shut: "</think>", answer: "answer"},
	"kimi_k2":       {Open: "<think>", Shut: "</think>", trim: true},
	"openai_gptoss": {},
	"qwen3":         {Open: "<think>", Shut: "</think>"},
	"seed_oss":      {Open: "<seed:think>", Shut: "</seed:think>"},
}

// toolParsers are the tool parsers, by vLLM's names.
var toolParsers = map[string]func(tools []Tool) toolParser{
	"deepseek_v3":  func([]Tool) toolParser { return newSection(deepseekV3) },
	"deepseek_v31": func([]Tool) toolParser { return newSection(deepseekV31) },
	"ernie45":      func([]Tool) toolParser { return &taggedParser{open: "<tool_call>", shut: "</tool_call>"} },
	"glm45":        func(t []Tool) toolParser { return newGLMParser(t) },
	"glm47":        func(t []Tool) toolParser { return newGLMParser(t) },
	"granite":      func([]Tool) toolParser { return &listParser{opens: []string{"<|tool_call|>", "<tool_call>"}} },
	"hermes":       func([]Tool) toolParser { return &taggedParser{open: "<tool_call>", shut: "</tool_call>"} },
	"hunyuan_a13b": func([]Tool) toolParser { return &listParser{opens: []string{"<tool_calls>"}, shut: "</tool_calls>"} },
	"kimi_k2":      func([]Tool) toolParser { return newSection(kimiK2) },
	"llama3_json":  func([]Tool) toolParser { return &llamaParser{} },
	"llama4_json":  func([]Tool) toolParser { return &llamaParser{} },
	"mistral":      func([]Tool) toolParser { return &mistralParser{} },
	"openai":       func([]Tool) toolParser { return nil },
	"pythonic":     func([]Tool) toolParser { return &pythonicParser{} },
	"qwen3_coder":  func(t []Tool) toolParser { return newCoderParser(t, "<tool_call>", "</tool_call>") },
	"qwen3_json":   func([]Tool) toolParser { return &taggedParser{open: "<tool_call>", shut: "</tool_call>"} },
	"qwen3_xml":    func(t []Tool) toolParser { return newCoderParser(t, "<tool_call>", "</tool_call>") },
	"seed_oss":     func(t []Tool) toolParser { return newCoderParser(t, "<seed:tool_call>", "</seed:tool_call>") },
}

// loose are those that leave white space before the first call to the content.
var loose = []string{"deepseek_v3", "deepseek_v31", "ernie45", "granite", "hermes", "hunyuan_a13b", "kimi_k2", "qwen3_json"}

// ToolNames returns the names of the tool parsers.
func ToolNames() []string { return names(toolParsers) }

// ReasoningNames returns the names of the reasoning parsers.
func ReasoningNames() []string { return names(thoughts) }

func names[V any](m map[string]V) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Thoughts returns the marks of a reasoning parser, and whether there is one
// that has any.
func Thoughts(name string) (Marks, bool) {
	m := thoughts[name]
	return m, m.Open != ""
}

// Channels reports whether outputs are in channels: gpt-oss writes all of them
// so, whichever of the two parsers is in use.
func Channels(reasoning, tools string) bool { return reasoning == "openai_gptoss" || tools == "openai" }

func (o *Options) check() error {
	if _, ok := thoughts[o.Reasoning]; !ok && o.Reasoning != "" {
		return fmt.Errorf("reasoning parser %q is unknown; known are %s", o.Reasoning, strings.Join(ReasoningNames(), ", "))
	}
	if _, ok := toolParsers[o.Tools]; !ok && o.Tools != "" {
		return fmt.Errorf("tool parser %q is unknown; known are %s", o.Tools, strings.Join(ToolNames(), ", "))
	}
	return nil
}
