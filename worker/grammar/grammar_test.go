package grammar

import (
	"encoding/json"
	"errors"
	"math/rand"
	"os"
	"regexp"
	"strings"
	"testing"

	"roundhouse/worker/grammar/grammartest"
	"roundhouse/worker/tokenizer"
)

// demoVocab is the vocabulary of the demonstration model.
func demoVocab(t testing.TB) *Vocab {
	t.Helper()
	data, err := os.ReadFile("../demo/model/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	words := make([][]byte, tok.Size())
	var ends []int32
	for id := range words {
		if tok.IsSpecial(int32(id)) {
			ends = append(ends, int32(id))
			continue
		}
		words[id] = tok.TokenBytes(int32(id))
	}
	return NewVocab(words, ends)
}

// generate draws tokens from the masks until the output ends. budget is how
// many it may have.
func generate(t testing.TB, m *Matcher, v *Vocab, r *rand.Rand, budget int) string {
	t.Helper()
	var out []byte
	for left := budget; !m.Done(); left-- {
		if left == 0 {
			if !m.Complete() {
				t.Fatalf("the budget of %d is spent, and the output is not complete: %s", budget, out)
			}
			return string(out)
		}
		mask := m.Mask(left)
		var allowed []int32
		for id := range v.size {
			if mask[id/32]&(1<<(id%32)) != 0 {
				allowed = append(allowed, int32(id))
			}
		}
		if len(allowed) == 0 {
			t.Fatalf("no token may follow %q with %d left of %d", out, left, budget)
		}
		pick := allowed[r.Intn(len(allowed))]
		if r.Intn(3) == 0 { // the lowest ids are single signs, which move on
			pick = allowed[min(r.Intn(20), len(allowed)-1)]
		}
		if err := m.Advance(pick); err != nil {
			t.Fatalf("after %q a token that the mask allows fails: %v", out, err)
		}
		out = append(out, v.tokens[pick]...)
		if m.ended {
			out = out[:len(out)-len(v.tokens[pick])]
		}
	}
	return string(out)
}

// TestSchemas draws outputs for 500 schemas, with budgets from the least to
// plenty, and has each checked by a validator of its own.
func TestSchemas(t *testing.T) {
	v := demoVocab(t)
	for i, s := range grammartest.Schemas() {
		g, err := Compile(Spec{JSONSchema: s, Compact: i%3 == 0}, v)
		if err != nil {
			t.Errorf("schema %d, %s: %v", i, s, err)
			continue
		}
		least := g.MinTokens()
		for j, budget := range []int{least, least + 1, least + 7, least + 60, 400} {
			r := rand.New(rand.NewSource(int64(i*10 + j)))
			text := generate(t, g.Start(), v, r, max(budget, least))
			if err := grammartest.Valid(s, text); err != nil {
				t.Fatalf("schema %d, %s\nbudget %d gives %s\n%v", i, s, budget, text, err)
			}
		}
	}
}

func TestRegexChoiceAndEBNF(t *testing.T) {
	v := demoVocab(t)
	f := func(spec Spec, want string) {
		t.Helper()
		g, err := Compile(spec, v)
		if err != nil {
			t.Fatalf("%v: %v", spec, err)
		}
		re := regexp.MustCompile("^(?s:" + want + ")$")
		for i := range 30 {
			r := rand.New(rand.NewSource(int64(i)))
			if text := generate(t, g.Start(), v, r, g.MinTokens()+i*3); !re.MatchString(text) {
				t.Errorf("%+v gives %q, which %s does not match", spec, text, want)
			}
		}
	}
	f(Spec{Choice: []string{"yes", "no", "yes, but", "é"}}, "yes|no|yes, but|é")
	for _, re := range []string{`[a-z]+@[a-z]+\.com`, `(?i)hello( world)*`, `\d{3}-\d{4}`, `a{2,5}|b*c`, `[^a-z]{1,9}`, `^é+[一-龥]$`, `.*x`, `(a|b)*abb`, `\w+ \S+`, `(?s).{3}`} {
		f(Spec{Regex: re}, re)
	}
	f(Spec{EBNF: "root ::= \"a\" item+ # note\nitem ::= [0-9]{2} | \"x\"? \"y\"\n"}, `a([0-9]{2}|x?y)+`)
	f(Spec{EBNF: "root ::= (\"yes\" | \"no\") tail*\ntail ::=\n  \" and \" [^a-z\\n]\n  | \"\\u00e9\""}, "(yes|no)( and [^a-z\n]|é)*")
	f(Spec{EBNF: `root ::= "(" root ")" | "x"`}, `\(*x\)*`)
	f(Spec{EBNF: `root ::= expr ("=" expr)?
expr ::= term ([+-] term)*
term ::= [0-9]+ | "(" expr ")"`}, `[0-9+()=-]+`)
	f(Spec{JSONObject: true}, `\{.*\}`)
}

// TestCalls draws calls of tools whose schemas have references of their own.
func TestCalls(t *testing.T) {
	v := demoVocab(t)
	weather := []byte(`{"type":"object","properties":{"at":{"$ref":"#/$defs/p"}},"required":["at"],"$defs":{"p":{"enum":["A","B"]}}}`)
	echo := []byte(`{"type":"object","properties":{"n":{"$ref":"#/$defs/p"}},"required":["n"],"$defs":{"p":{"type":"integer"}}}`)
	whole := []byte(`{"type":"array","minItems":1,"items":{"anyOf":[
		{"type":"object","properties":{"name":{"const":"weather"},"parameters":{"type":"object","properties":{"at":{"enum":["A","B"]}},"required":["at"]}},"required":["name","parameters"]},
		{"type":"object","properties":{"name":{"const":"echo"},"parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},"required":["name","parameters"]},
		{"type":"object","properties":{"name":{"const":"free"},"parameters":{"type":"object"}},"required":["name","parameters"]}]}}`)
	for seed := range 40 {
		one := seed%2 == 0
		g, err := Compile(Spec{Calls: []Call{{"weather", weather}, {"echo", echo}, {"free", nil}}, OneCall: one}, v)
		if err != nil {
			t.Fatal(err)
		}
		text := generate(t, g.Start(), v, rand.New(rand.NewSource(int64(seed))), g.MinTokens()+4*seed)
		if err := grammartest.Valid(whole, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var calls []any
		if err := json.Unmarshal([]byte(text), &calls); err != nil || one && len(calls) != 1 {
			t.Errorf("%s: %d calls, %v", text, len(calls), err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	v := demoVocab(t)
	f := func(spec Spec, want string) {
		t.Helper()
		_, err := Compile(spec, v)
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80v: %v; want an error with %q", spec, err, want)
		}
	}
	schema := func(s, want string) { t.Helper(); f(Spec{JSONSchema: []byte(s)}, want) }
	f(Spec{}, "exactly one")
	f(Spec{Regex: "a", JSONObject: true}, "exactly one")
	f(Spec{Regex: "("}, "cannot be used")
	f(Spec{Regex: "(?=a)b"}, "cannot be used")
	f(Spec{Regex: `a\bb`}, "ends of the expression")
	f(Spec{Regex: strings.Repeat("a", 20_000)}, "at most")
	f(Spec{Regex: "((a{1,1000}){1,1000})"}, "cannot be used")
	f(Spec{Regex: `[^\x00-\x{10FFFF}]`}, "no text fits")
	f(Spec{Choice: []string{"a", ""}}, "choice 1")
	f(Spec{EBNF: "root ::= root"}, "no text fits")
	f(Spec{EBNF: "root ::= x root | \"b\"\nx ::= \"q\"?"}, "left recursion")
	f(Spec{EBNF: "root ::= a"}, `no rule "a"`)
	f(Spec{EBNF: "a ::= \"b\""}, `no rule "root"`)
	f(Spec{EBNF: "root ::= \"a\nroot ::= \"b\""}, "line")
	f(Spec{EBNF: "root ::= a\na ::= \"x\" a"}, "no text fits")
	f(Spec{EBNF: "root ::= (\"a\"{1000}){1000}"}, "too large")
	f(Spec{EBNF: "root ::= " + strings.Repeat("(", 1000)}, "nested deeper")
	schema(`{`, "not JSON")
	schema(`{} {}`, "not one JSON value")
	schema(`[]`, "neither an object")
	schema(`{"type":"strin"}`, "known are")
	schema(`{"not":{}}`, "no text fits")
	schema(`{"type":"array","minItems":3,"maxItems":2}`, "maxItems is 2")
	schema(`{"type":"string","minLength":-1}`, "minLength")
	schema(`{"type":"string","maxLength":100000000}`, "too large")
	schema(`{"type":"array","minItems":100000000,"items":{"type":"null"}}`, "too large")
	schema(`{"type":"integer","minimum":5,"maximum":4}`, "no number")
	schema(`{"type":"number","minimum":1e999999999}`, "minimum")
	schema(`{"type":"object","required":["x"],"additionalProperties":false}`, `"x" is required`)
	schema(`{"$ref":"#/$defs/none"}`, "names nothing")
	schema(`{"$ref":"#"}`, "left recursion")
	schema(`{"$defs":{"a":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}},"$ref":"#/$defs/a"}`, "no text fits")
	schema(`{"allOf":[{"type":"string"},{"type":"integer"}]}`, "no type fits both")
	schema(`{"enum":[]}`, "enum")
	schema(`{"type":"string","enum":[1]}`, "no value")
	schema(`{"a":1,"a":2}`, "twice")
	schema(`{"anyOf":`+strings.Repeat(`[{"anyOf":`, 100)+`[true]`+strings.Repeat("}]", 100)+`}`, "nested deeper")
	schema(`{"title":"`+strings.Repeat("x", 1<<20)+`"}`, "at most")
}
