package grammar

import (
	"math/rand"
	"testing"

	"roundhouse/worker/grammar/grammartest"
)

// FuzzCompile: whatever a client sends is refused or can be followed to its
// end, within the budget that it was found to need.
func FuzzCompile(f *testing.F) {
	for _, s := range grammartest.Schemas()[:47] { // as people write them
		f.Add(byte(0), string(s))
	}
	f.Add(byte(1), `(a|b){2,5}[^c]\d*`)
	f.Add(byte(2), "root ::= \"a\" b*\nb ::= [x-z]{1,3} | \"(\" root \")\"")
	f.Add(byte(3), `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"null"}}}`)
	for i, c := range acceptance(f) {
		if i%7 == 0 {
			f.Add(map[string]byte{"lark": 4, "ebnf": 2, "tag": 5}[c.Kind], c.Source)
		}
	}
	v := demoVocab(f)
	f.Fuzz(func(t *testing.T, kind byte, text string) {
		if len(text) > 2000 {
			return
		}
		spec := Spec{JSONSchema: []byte(text)}
		switch kind % 6 {
		case 1:
			spec = Spec{Regex: text}
		case 2:
			spec = Spec{EBNF: text}
		case 3:
			spec = Spec{Calls: []Call{{Name: text[:min(len(text), 5)], Parameters: []byte(text)}, {Name: "g"}}}
		case 4:
			spec = Spec{Lark: text}
		case 5:
			spec = Spec{Tag: []byte(text)}
		}
		g, err := Compile(spec, v)
		if err != nil {
			return
		}
		if n := g.MinTokens(); n <= 300 {
			generate(t, g.Start(), v, rand.New(rand.NewSource(1)), n+20)
		}
	})
}
