package grammar

import (
	"fmt"
	"strings"
	"testing"
)

// A grammar of a client's that has many alternatives before a long common end is
// compiled, and followed to its end, like any other: the completions of its first
// place are compared only as far as is worth while.
func TestManyAlternativesBeforeALongEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString("root ::= (")
	for i := range 18_000 {
		fmt.Fprintf(&b, `"%x" | `, i)
	}
	b.WriteString(`"z") ` + strings.Repeat(`"ab" `, 18_000))
	v := demoVocab(t)
	g, err := Compile(Spec{EBNF: b.String()}, v)
	if err != nil {
		t.Fatal(err)
	}
	if n := g.MinTokens(); n < 1 || n > 36_010 {
		t.Errorf("an answer takes at least %d tokens", n)
	}
}
