package resume

import (
	"fmt"
	"strings"
	"testing"
)

// TestReplayedText compares answers by what they say, whichever way they are
// cut into events and whatever their calls' ids are.
func TestReplayedText(t *testing.T) {
	call := func(id string, index int, name, arguments string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":%q,"type":"function","index":%d,"function":{"name":%q,"arguments":%q}}]}}]}`, id, index, name, arguments)
	}
	more := func(index int, arguments string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}}]}`, index, arguments)
	}
	text := func(s string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, s)
	}
	all := func(events ...string) (out string) {
		var s script
		for _, e := range events {
			s.add([]byte(e))
		}
		return string(s.text)
	}
	f := func(name, a, b string, want bool) {
		t.Helper()
		if (a == b) != want {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
	f("text cut elsewhere", all(text("on"), text("e two")), all(text("one t"), text("wo")), true)
	f("other ids", all(call("a", 0, "f", ""), more(0, `{"x":`), more(0, `1}`)), all(call("b", 0, "f", `{"x":1`), more(0, `}`)), true)
	f("other arguments", all(call("a", 0, "f", `{"x":1}`)), all(call("a", 0, "f", `{"x":2}`)), false)
	f("one call and two", all(call("a", 0, "f", ""), call("b", 1, "f", "")), all(call("a", 0, "ff", "")), false)
	f("arguments of another call", all(call("a", 0, "f", ""), call("b", 1, "g", ""), more(0, "{}")), all(call("a", 0, "f", ""), call("b", 1, "g", ""), more(1, "{}")), false)
	f("a name is no text", all(text("f")), all(call("a", 0, "f", "")), false)
	if got := all(text("x"), call("a", 0, "f", "{}")); strings.ContainsAny(got, "\n") || len(got) != len("x")+len("f")+len("{}")+3 {
		t.Errorf("got %q", got)
	}
}
