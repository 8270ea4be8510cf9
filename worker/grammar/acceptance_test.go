package grammar

import (
	"encoding/json"
	"errors"
	"math/rand"
	"os"
	"strings"
	"testing"
)

// answered is a grammar and which texts it accepts.
type answered struct {
	Kind, Source string
	Answers      map[string]bool // nil: refused
}

func acceptance(t testing.TB) []answered {
	t.Helper()
	data, err := os.ReadFile("testdata/acceptance.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []answered
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if len(out) < 200 {
		t.Fatalf("%d grammars were read", len(out))
	}
	return out
}

// TestAcceptance compares Lark grammars, left-recursive EBNF and structural tags
// with the answers of the library that vLLM uses: what it refuses is refused,
// and the same texts are accepted. testdata/acceptance.py asked it.
func TestAcceptance(t *testing.T) {
	v, drawn := byteVocab(), demoVocab(t)
	for _, c := range acceptance(t) {
		g, err := Compile(specFor(c.Kind, c.Source), v)
		if (err == nil) != (c.Answers != nil) {
			t.Errorf("%s %s: got %v; refused there: %v", c.Kind, c.Source, err, c.Answers == nil)
			continue
		}
		for text, want := range c.Answers {
			if got := accepts(g, text); got != want {
				t.Errorf("%s %s: %q accepted: %v; want %v", c.Kind, c.Source, text, got, want)
			}
		}
		if err != nil {
			continue
		}
		if g, err = Compile(specFor(c.Kind, c.Source), drawn); err != nil {
			t.Errorf("%s %s: %v", c.Kind, c.Source, err)
			continue
		}
		judge, _ := Compile(specFor(c.Kind, c.Source), v)
		for seed := range 5 {
			text := generate(t, g.Start(), drawn, rand.New(rand.NewSource(int64(seed))), g.MinTokens()+10*seed)
			if !accepts(judge, text) {
				t.Errorf("%s %s gives %q, which it does not accept", c.Kind, c.Source, text)
			}
		}
	}
}

func specFor(kind, source string) Spec {
	switch kind {
	case "lark":
		return Spec{Lark: source}
	case "ebnf":
		return Spec{EBNF: source}
	}
	return Spec{Tag: []byte(source)}
}

// byteVocab has a token for each byte, and one for the end.
func byteVocab() *Vocab {
	var words [][]byte
	for c := range 256 {
		words = append(words, []byte{byte(c)})
	}
	return NewVocab(append(words, nil), []int32{256})
}

// accepts reports whether a grammar over bytes takes a whole text.
func accepts(g *Grammar, text string) bool {
	m := g.Start()
	for _, c := range []byte(text) {
		if m.Advance(int32(c)) != nil {
			return false
		}
	}
	return m.Complete()
}

// TestTagsAndLarkRefuse has what the library of vLLM takes and this package
// does not, and how a mistake is named.
func TestTagsAndLarkRefuse(t *testing.T) {
	v := demoVocab(t)
	f := func(kind, source, want string) {
		t.Helper()
		_, err := Compile(specFor(kind, source), v)
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", source, err, want)
		}
	}
	f("lark", "start: \"a\"\n  | b\n", `line 2: there is no rule or terminal named "b"`)
	f("lark", "start: x start | \"b\"\nx: \"q\"?", "left recursion")
	f("lark", "start[max_tokens=3]: \"a\"*", "attributes of rules are not supported")
	f("lark", "start: %regex {\"substring_chars\": \"abc\"}", "only %json and %lark")
	f("lark", "start: <[5]>", "special tokens")
	f("lark", "start: "+strings.Repeat("(", 1000), "nested deeper")
	f("lark", "start: "+strings.Repeat("%lark {start: ", 1000), "nested deeper")
	f("lark", "start: \"a\"~400000 \"b\"~400000", "too large")
	f("lark", "start: \"a\"~99999999999999999999", "expected a count")
	format := func(s, want string) { t.Helper(); f("tag", `{"format":`+s+`}`, want) }
	format(`{"type":"token","token":5}`, `format/type is "token"; supported are`)
	format(`{"type":"any_text","max_tokens":5}`, "use max_chars")
	format(`{"type":"json_schema","json_schema":{},"style":"qwen_xml"}`, `only "json" is supported`)
	format(`{"type":"json_schema","json_schema":{},"any_order":true}`, "any_order is not supported")
	format(`{"type":"json_schema","json_schema":{},"excludes":["a"]}`, "excludes is not supported")
	format(`{"type":"tag","begin":"a","content":{"type":"any_text"},"end":{"type":"token","token":5}}`, "format/end")
	format(`{"type":"or","elements":[{"type":"const_string","value":"a"},{"type":"regex","pattern":"("}]}`, "format/elements/1/pattern cannot be used")
	format(`{"type":"any_text","excludes":[""]}`, "empty")
	f("tag", `{"structures":[{"begin":"a","schema":null,"end":"b"}],"triggers":["a"]}`, "structures/0 has no schema")
	f("tag", `{"structures":[{"begin":"a","schema":{},"end":"b"}]}`, "structures/triggers")
}
