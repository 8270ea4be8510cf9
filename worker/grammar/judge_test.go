package grammar

import (
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestJudge draws outputs for schemas as Pydantic, zod and OpenAI's strict mode
// write them, and for each keyword, and has each checked by a validator that
// somebody else wrote.
func TestJudge(t *testing.T) {
	data, err := os.ReadFile("testdata/schemas.txt")
	if err != nil {
		t.Fatal(err)
	}
	v := demoVocab(t)
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		n++
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("s.json", doc); err != nil {
			t.Fatal(err)
		}
		judge, err := c.Compile("s.json")
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		g, err := Compile(Spec{JSONSchema: []byte(line), Compact: n%2 == 0}, v)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		for seed := range 20 {
			text := generate(t, g.Start(), v, rand.New(rand.NewSource(int64(seed))), g.MinTokens()+seed*seed)
			x, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Errorf("%s\ngives %s: %v", line, text, err)
				break
			}
			if err := judge.Validate(x); err != nil {
				t.Errorf("%s\ngives %s: %v", line, text, err)
				break
			}
		}
	}
	if n < 40 {
		t.Fatalf("%d schemas were read", n)
	}
}

// TestTaken has the schemas whose keywords are taken and not held to in that
// form, as docs/models.md lists them, and what is refused.
func TestTaken(t *testing.T) {
	v := demoVocab(t)
	f := func(schema, want string) {
		t.Helper()
		_, err := Compile(Spec{JSONSchema: []byte(schema)}, v)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", schema, err, want)
		}
	}
	f(`{"$ref":"https://example.org/a.json"}`, "")
	f(`{"type":"array","uniqueItems":true,"items":{"type":"string"}}`, "")
	f(`{"oneOf":[{"type":"string"},{"type":"string","minLength":2}]}`, "")
	f(`{"type":"object","properties":{"a":{"type":"integer"}},"if":{"properties":{"a":{"minimum":3}}},"then":{"required":["a"]}}`, "")
	f(`{"type":"object","not":{"required":["a"]}}`, "")
	f(`{"type":"number","multipleOf":0.25}`, "")
	f(`{"type":"object","minProperties":2}`, "")
	f(`{"type":"object","properties":{"a":{}},"propertyNames":{"type":"string"},"unevaluatedProperties":false}`, "")
	f(`{"type":"string","x-anything":1,"unheardOf":true,"discriminator":{"propertyName":"k"}}`, "")
	f(`{"type":"array","contains":{"type":"string"}}`, `the keyword "contains" is not supported`)
	f(`{"type":"array","unevaluatedItems":false}`, `the keyword "unevaluatedItems" is not supported`)
	f(`{"type":"string","not":{"type":"string"}}`, "not leaves no type")
	f(`{"type":"integer","multipleOf":0}`, "want a number above 0")
	f(`{"type":"integer","multipleOf":7,"minimum":1,"maximum":100000000}`, "is not supported; give a minimum and a maximum")
	f(`{"type":"string","pattern":"(","maxLength":3}`, "pattern cannot be used")
	f(`{"type":"string","pattern":"\\bx","maxLength":3}`, "only ^ and $ are supported")
	f(`{"type":"object","patternProperties":{"(":true}}`, "patternProperties")
	f(`{"allOf":[{"type":"string"},{"type":"integer"}]}`, "no type fits both")
	f(`{"type":"object","properties":{"a":false},"required":["a"]}`, "no value of it is allowed")
	f(`{"type":"array","items":{"enum":[1,2]},"uniqueItems":true,"minItems":3}`, "only 2 items can differ")
}
