package balancer

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzOpening: what a conversation begins with stays the same, whatever follows, and two
// that differ in their first question are told apart.
func FuzzOpening(f *testing.F) {
	f.Add("be brief", "hi", "hello", "and then?")
	f.Add("", "", "", "")
	f.Add(strings.Repeat("x", 3000), "]", "}", "\x00")
	f.Fuzz(func(t *testing.T, system, question, answer, next string) {
		type message struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		}
		talk := []message{{"system", system}, {"user", question}}
		text := func(of []message) []byte {
			b, err := json.Marshal(of)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		first := opening(text(talk))
		if later := opening(text(append(talk, message{"assistant", answer}, message{"user", next}))); later != first {
			t.Fatalf("it begins with %q, and later with %q", first, later)
		}
		if other := opening(text([]message{{"system", system}, {"user", question + "?"}})); other == first {
			t.Fatalf("another question begins with %q, too", other)
		}
		for _, odd := range []string{question, "[" + question, "[1,2," + next, `[{"role":"assistant"}]`} {
			if got := opening([]byte(odd)); len(got) > len(odd) {
				t.Fatalf("%q begins with %q", odd, got)
			}
		}
	})
}
