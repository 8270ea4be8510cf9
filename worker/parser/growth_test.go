package parser

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated is how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What an output costs grows with its length and no faster, wherever it is long: in its
// text, its thoughts, the arguments of a call, or in white space.
func TestLongOutputs(t *testing.T) {
	const value = "<tool_call>\n<function=f>\n<parameter=s>\n"
	begins := map[string]string{
		"hermes": `<tool_call>{"name": "f", "arguments": {"s": "`, "llama3_json": `{"name": "f", "parameters": {"s": "`, "mistral": `[TOOL_CALLS]f{"s": "`,
		"pythonic": `[f(s="`, "qwen3_coder": value, "qwen3_xml": value, "seed_oss": strings.ReplaceAll(value, "tool_call", "seed:tool_call"),
		"glm45": "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>", "glm47": "<tool_call>f<arg_key>s</arg_key><arg_value>",
		"deepseek_v3":  "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"s\": \"",
		"deepseek_v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"s\": \"",
		"kimi_k2":      "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"s\": \"",
		"granite":      `<|tool_call|>[{"name": "f", "arguments": {"s": "`, "hunyuan_a13b": `<tool_calls>[{"name": "f", "arguments": {"s": "`,
	}
	for _, name := range ToolNames() {
		for _, beginning := range []string{"", begins[name]} {
			for _, piece := range []string{"word ", "\n"} {
				cost := func(n int) uint64 {
					return allocated(func() {
						p, err := New(Options{Tools: name, Offered: offered})
						if err != nil {
							t.Fatal(err)
						}
						p.Add(beginning)
						for range n {
							p.Add(piece)
						}
						p.Finish()
					})
				}
				grows(t, fmt.Sprintf("%s: %q behind %q", name, piece, beginning), cost)
			}
		}
	}
	for _, name := range ReasoningNames() {
		grows(t, name, func(n int) uint64 {
			return allocated(func() {
				p, err := New(Options{Reasoning: name, Begun: true})
				if err != nil {
					t.Fatal(err)
				}
				for range n {
					p.Add("word ")
				}
			})
		})
	}
}

// grows fails the test if twice the length costs more than thrice as much.
func grows(t *testing.T, name string, cost func(n int) uint64) {
	t.Helper()
	if once, twice := cost(2000), cost(4000); twice > 3*once+100_000 {
		t.Errorf("%s: %d bytes for 2000 pieces, %d for 4000", name, once, twice)
	}
}

// A mark is found however it is cut, and no byte is looked at again and again.
func TestWaiting(t *testing.T) {
	const text = "a<b</endx>c</end>rest</end>"
	for size := 1; size <= len(text); size++ {
		var w waiting
		for at := 0; at < len(text); at += size {
			before, mark, rest := w.until(text[at:min(at+size, len(text))], "</end>", "</ended>")
			if mark != "" {
				if before != "a<b</endx>c" || !strings.HasPrefix("rest</end>", rest) || len(w.text) != 0 {
					t.Errorf("in pieces of %d: %q, %q, %q", size, before, mark, rest)
				}
				break
			}
			if left := len(w.text) - w.seen; left >= len("</ended>") {
				t.Errorf("in pieces of %d: %d of %d bytes are looked at again", size, left, len(w.text))
			}
		}
	}
}
