package parser

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

var offered = []Tool{
	{Name: "f", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"integer"},"s":{"type":"string"},"o":{"type":"object"},"b":{"type":"boolean"}}}`)},
	{Name: "g"},
}

// whole is all that a parser said, put together.
type whole struct {
	reasoning, content string
	calls              []CallDelta
}

func (w *whole) add(t testing.TB, d Delta) {
	t.Helper()
	w.reasoning += d.Reasoning
	w.content += d.Content
	for _, c := range d.Calls {
		switch {
		case c.Index == len(w.calls) && c.Name != "":
			w.calls = append(w.calls, c)
		case c.Index == len(w.calls)-1 && c.Name == "":
			w.calls[c.Index].Arguments += c.Arguments
		default:
			t.Fatalf("delta %+v after %d calls", c, len(w.calls))
		}
	}
}

func (w whole) String() string {
	s := fmt.Sprintf("reasoning %q content %q", w.reasoning, w.content)
	for _, c := range w.calls {
		s += fmt.Sprintf(" %s(%s)", c.Name, c.Arguments)
	}
	return s
}

// parse feeds the pieces to a new parser.
func parse(t testing.TB, o Options, pieces ...string) whole {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var w whole
	for _, s := range pieces {
		w.add(t, p.Add(s))
	}
	w.add(t, p.Finish())
	return w
}

// cases are outputs with what they say.
var cases = []struct {
	parser, text, content string
	calls                 []string // name(arguments)
}{
	{"hermes", `plain text`, `plain text`, nil},
	{"hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>", "", []string{`f({"x": 1})`}},
	{"hermes", "Let me see.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"a</tool_call>\\\"}{\"}}\n</tool_call>\n<tool_call>\n{\"arguments\": {}, \"name\": \"g\"}\n</tool_call>\n", "Let me see.\n\n", []string{`f({"s": "a</tool_call>\"}{"})`, `g({})`}},
	{"hermes", `<tool_call>{"name":"g"}</tool_call> done`, " done", []string{`g({})`}},
	{"hermes", `<tool_call>{"name":"g","arguments":"{\"x\":2}","id":3}</tool_call>`, "", []string{`g({"x":2})`}},
	{"hermes", `<tool_call>{"id": 1.5, "name":"g","arguments": null}`, "", []string{`g(null)`}},
	{"hermes", `<tool_call>{"arguments":{"s":"é你🚂"},"name":"é"}</tool_call>ü`, "ü", []string{`é({"s":"é你🚂"})`}},
	{"hermes", `<tool_call>not json</tool_call>`, `<tool_call>not json</tool_call>`, nil},
	{"hermes", `<tool_call>{"arguments": {"x": 1}}</tool_call> x`, `<tool_call>{"arguments": {"x": 1}}</tool_call> x`, nil},
	{"hermes", `<tool_call>{"name": "f", "arguments": {"x": 1`, ``, []string{`f({"x": 1)`}},
	{"hermes", `<tool_call>{"name": "f", "arguments": {"x": 1}</tool_call>after`, `after`, []string{`f({"x": 1})`}},
	{"hermes", `a <b <tool_cal`, `a <b <tool_cal`, nil},
	{"hermes", `<tool_call>{"na`, `<tool_call>{"na`, nil},
	{"hermes", "  \n", "  \n", nil},
	{"llama3_json", `{"name": "f", "parameters": {"x": 1}}`, "", []string{`f({"x": 1})`}},
	{"llama3_json", `<|python_tag|>{"name": "f", "parameters": {"x": 1}}; {"name": "g", "arguments": {}}`, "", []string{`f({"x": 1})`, `g({})`}},
	{"llama3_json", `{"answer": 42}`, `{"answer": 42}`, nil},
	{"llama3_json", `Sure: {"name": "f"}`, `Sure: {"name": "f"}`, nil},
	{"llama3_json", `{"name": "f", "parameters": {}} and more`, ` and more`, []string{`f({})`}},
	{"llama3_json", `<|python_tag|>print(1)`, `<|python_tag|>print(1)`, nil},
	{"mistral", `[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}]`, "", []string{`f({"x": 1})`, `g({})`}},
	{"mistral", `ok [TOOL_CALLS]f{"x": {"y": "}"}}[TOOL_CALLS]g[ARGS]{}`, "ok", []string{`f({"x": {"y": "}"}})`, `g({})`}},
	{"mistral", `[TOOL_CALLS] nothing`, `[TOOL_CALLS] nothing`, nil},
	{"mistral", `[TOOL_CALLS] [1, 2]`, `[TOOL_CALLS] [1, 2]`, nil},
	{"mistral", `[TOOL] x`, `[TOOL] x`, nil},
	{"pythonic", `[f(x=1, s='it\'s "so"', o={"a": [1, None, True]}), g()]`, "", []string{`f({"x": 1, "s": "it's \"so\"", "o": {"a": [1, null, true]}})`, `g({})`}},
	{"pythonic", `[a.b(x=-1.5, t=(1, 2,), n=1_000)]`, "", []string{`a.b({"x": -1.5, "t": [1, 2], "n": 1000})`}},
	{"pythonic", `[link](http://example.org)`, `[link](http://example.org)`, nil},
	{"pythonic", `[1] see`, `[1] see`, nil},
	{"pythonic", `[f(1)]`, `[f(1)]`, nil},
	{"pythonic", `[f(x=1), oops]`, `, oops]`, []string{`f({"x": 1})`}},
	{"pythonic", `[]`, `[]`, nil},
	{"pythonic", `[f(x="a`, `[f(x="a`, nil},
	{"qwen3_coder", "I will.\n<tool_call>\n<function=f>\n<parameter=x>\n42\n</parameter>\n<parameter=s>\n1\n<b>2\n</parameter>\n<parameter=o>\n{\"a\": 1}\n</parameter>\n<parameter=b>\nTrue\n</parameter>\n</function>\n</tool_call>", "I will.", []string{`f({"x": 42, "s": "1\n<b>2", "o": {"a":1}, "b": true})`}},
	{"qwen3_coder", "<tool_call><function=g></function></tool_call><tool_call>\n<function=f>\n<parameter=x>\nnot a number\n</parameter>\n</function>\n</tool_call>tail", "tail", []string{`g({})`, `f({"x": "not a number"})`}},
	{"qwen3_coder", "<function=g>\n<parameter=q>\nnull\n<parameter=r>\nz\n</function>", "", []string{`g({"q": null, "r": "z"})`}},
	{"qwen3_coder", "<tool_call>no function</tool_call>", "<tool_call>no function</tool_call>", nil},
	{"qwen3_coder", "a < b <tool_call>\n<func", "a < b <tool_call>\n<func", nil},
}

func TestWhole(t *testing.T) {
	for _, c := range cases {
		w := parse(t, Options{Tools: c.parser, Offered: offered}, c.text)
		var calls []string
		for _, x := range w.calls {
			calls = append(calls, x.Name+"("+x.Arguments+")")
		}
		if w.content != c.content || fmt.Sprint(calls) != fmt.Sprint(c.calls) {
			t.Errorf("%s: %q\ngives content %q calls %q\nwant          %q       %q", c.parser, c.text, w.content, calls, c.content, c.calls)
		}
	}
}

// fragments are what random outputs are made of.
var fragments = []string{
	"<tool_call>", "</tool_call>", "<function=f>", "<function=", "</function>", "<parameter=x>", "</parameter>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>",
	"<think>", "</think>", "{", "}", "[", "]", "(", ")", `"name": "f"`, `"arguments": {"x": 1}`, `"parameters": {}`, `{"name": "g", "arguments": {"s": "}\""}}`, ",", ";", ":", " ", "\n", "\n\n",
	"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>", "<tool_calls>", "</tool_calls>", "<answer>", "</answer>",
	"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "\n```json\n", "\n```", "<|tool_call|>", "<|tool_call_begin|>",
	"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "functions.f:0", "\x00<|start|>", "\x00<|channel|>", "\x00<|message|>",
	"\x00<|end|>", "\x00<|call|>", "<|end|>", "analysis", "final", "commentary to=functions.f ", "\x00<|constrain|>json",
	"text", "f(x=1)", "g(", "'", `"`, "\\", "é", "<", ">", "1", "null", "f",
}

func randomOutput(r *rand.Rand) string {
	var b strings.Builder
	if r.Intn(2) == 0 {
		b.WriteString(cases[r.Intn(len(cases))].text)
	}
	for range r.Intn(12) {
		b.WriteString(fragments[r.Intn(len(fragments))])
	}
	return b.String()
}

// split cuts a text at random places.
func split(r *rand.Rand, s string) []string {
	var out []string
	for s != "" {
		n := 1 + r.Intn(min(len(s), 1+r.Intn(12)))
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// TestAnySplitSaysTheSame is the promise of this package.
func TestAnySplitSaysTheSame(t *testing.T) {
	check := func(seed int64, o Options, text string) {
		t.Helper()
		want := parse(t, o, text)
		r := rand.New(rand.NewSource(seed))
		for range 4 {
			pieces := split(r, text)
			if got := parse(t, o, pieces...); got.String() != want.String() {
				t.Fatalf("seed %d, %+v\n%q\nat once: %s\nin parts: %s\n%q", seed, o.Tools, text, want, got, pieces)
			}
		}
		if got := parse(t, o, strings.Split(text, "")...); got.String() != want.String() {
			t.Fatalf("seed %d, %s\n%q\nat once: %s\nby characters: %s", seed, o.Tools, text, want, got)
		}
	}
	for seed := int64(0); seed < 3000; seed++ {
		r := rand.New(rand.NewSource(seed))
		o := Options{
			Tools:     append(ToolNames(), "")[r.Intn(len(ToolNames())+1)],
			Reasoning: append(ReasoningNames(), "", "", "", "", "")[r.Intn(len(ReasoningNames())+5)],
			Begun:     r.Intn(3) == 0,
			Offered:   offered,
			Choice:    []Choice{Auto, Auto, Auto, Auto, Required, Named, None}[r.Intn(7)],
		}
		check(seed, o, randomOutput(r))
	}
}

// TestChannels has gpt-oss's messages. A mark counts where it is a token, which
// \x00 says.
func TestChannels(t *testing.T) {
	f := func(o Options, text, want string) {
		t.Helper()
		o.Tools, o.Reasoning = "openai", "openai_gptoss"
		text = strings.ReplaceAll(text, "<|", "\x00<|")
		for seed := range 20 {
			if got := parse(t, o, split(rand.New(rand.NewSource(int64(seed))), text)...).String(); got != want {
				t.Errorf("%q\ngives %s\nwant  %s", text, got, want)
				return
			}
		}
	}
	tools := Options{Offered: offered}
	f(tools, "<|channel|>analysis<|message|>Hm é.<|end|><|start|>assistant<|channel|>final<|message|>42<|return|>", `reasoning "Hm é." content "42"`)
	f(tools, "<|channel|>analysis<|message|>Need f.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\": 1}<|call|>", `reasoning "Need f." content "" f({"x": 1})`)
	f(tools, "<|start|>assistant to=functions.g<|channel|>commentary<|message|>{}<|call|>", `reasoning "" content "" g({})`)
	f(tools, "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.f json<|message|>{\"x\": 1}", `reasoning "" content "I look." f({"x": 1})`)
	f(tools, "<|channel|>analysis to=functions.g <|constrain|>json<|message|>{}<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>", `reasoning "" content "" g({}) f({})`)
	f(tools, "<|channel|>commentary to=browser.search<|message|>{}<|call|>", `reasoning "" content ""`)
	f(tools, "<|channel|>analysis<|message|>cut of", `reasoning "cut of" content ""`)
	f(tools, "plain", `reasoning "" content "plain"`)
	f(tools, "<|channel|>fin", `reasoning "" content ""`)
	f(Options{}, "<|channel|>commentary to=functions.f<|message|>{}<|call|>", `reasoning "" content "{}"`)
	f(Options{Offered: offered, Choice: Required}, `[{"name": "f", "parameters": {"x": 1}}]`, `reasoning "" content "" f({"x": 1})`)
	f(Options{Offered: offered[:1], Choice: Named}, `{"x": 1}`, `reasoning "" content "" f({"x": 1})`)

	said := parse(t, Options{Tools: "openai", Offered: offered}, "\x00<|channel|>final\x00<|message|>write <|end|> and <|call|>\x00<|return|>")
	if said.content != "write <|end|> and <|call|>" {
		t.Errorf("marks that are spelt end a message: %s", said)
	}
	p, err := New(Options{Reasoning: "openai_gptoss"})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text    string
		reasons bool
	}{{"\x00<|channel|>", false}, {"analysis", false}, {"\x00<|message|>", true}, {"hm", true}, {"\x00<|end|>", false}, {"\x00<|start|>assistant\x00<|channel|>final\x00<|message|>", false}} {
		if p.Add(step.text); p.Reasons() != step.reasons {
			t.Errorf("after %q Reasons is %v", step.text, p.Reasons())
		}
	}
}

func TestReasoning(t *testing.T) {
	f := func(o Options, text, reasoning, content string) {
		t.Helper()
		w := parse(t, o, text)
		if w.reasoning != reasoning || w.content != content {
			t.Errorf("%+v: %q gives %s; want %q and %q", o, text, w, reasoning, content)
		}
	}
	qwen, deepseek := Options{Reasoning: "qwen3"}, Options{Reasoning: "deepseek_r1"}
	begun := Options{Reasoning: "qwen3", Begun: true}
	f(qwen, "<think>\nhm\n</think>\n\n42", "\nhm\n", "\n\n42")
	f(qwen, "\n<think>hm</think>42", "hm", "42")
	f(qwen, "42", "", "42")
	f(qwen, "42 <think>", "", "42 <think>")
	f(qwen, "<think>cut of", "cut of", "")
	f(qwen, "<thi", "", "<thi")
	f(begun, "hm</think>42</think>", "hm", "42</think>")
	f(begun, "<think>hm</think>42", "hm", "42")
	f(deepseek, "hm</think>42", "hm", "42")
	f(deepseek, "<think>hm</think>42", "hm", "42")
	f(deepseek, "hm </thin", "hm </thin", "")
	f(Options{}, "<think>x</think>", "", "<think>x</think>")

	p, err := New(qwen)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text    string
		reasons bool
	}{{"<think>", true}, {"a", true}, {"</th", true}, {"ink>", false}, {"b", false}} {
		if p.Add(step.text); p.Reasons() != step.reasons {
			t.Errorf("after %q Reasons is %v", step.text, p.Reasons())
		}
	}
}

func TestForcedCalls(t *testing.T) {
	f := func(choice Choice, text, want string) {
		t.Helper()
		w := parse(t, Options{Tools: "hermes", Offered: offered, Choice: choice}, text)
		if w.String() != want {
			t.Errorf("%q gives %s; want %s", text, w, want)
		}
	}
	f(Required, `[{"name": "f", "parameters": {"x": 1}}, {"name": "g", "parameters": {}}]`, `reasoning "" content "" f({"x": 1}) g({})`)
	f(Required, `sorry`, `reasoning "" content "sorry"`)
	f(Named, `{"x": 1}`, `reasoning "" content "" f({"x": 1})`)
	f(None, `<tool_call>`, `reasoning "" content "<tool_call>"`)
	f(Auto, `<tool_call>{"name":"f"}`, `reasoning "" content "" f({})`)
}

func TestUnknownNamesAreRefused(t *testing.T) {
	for _, o := range []Options{{Reasoning: "x"}, {Tools: "x"}, {Tools: "x", Offered: offered, Choice: None}} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "known are") {
			t.Errorf("%+v: error is %v", o, err)
		}
	}
}

// FuzzSplit: no text makes a parser panic, lose valid arguments, or say
// something else when it comes in two parts.
func FuzzSplit(f *testing.F) {
	for _, c := range cases {
		f.Add(c.text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		for _, name := range ToolNames() {
			for _, reasoning := range append(ReasoningNames(), "") {
				o := Options{Tools: name, Reasoning: reasoning, Offered: offered}
				want := parse(t, o, text)
				if got := parse(t, o, text[:at], text[at:]); got.String() != want.String() {
					t.Errorf("%s %q at %d: %s; want %s", name, text, at, got, want)
				}
				if name == "pythonic" {
					for _, c := range want.calls {
						if !json.Valid([]byte(c.Arguments)) {
							t.Errorf("%q: arguments %s", text, c.Arguments)
						}
					}
				}
			}
		}
	})
}
