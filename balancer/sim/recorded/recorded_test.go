package recorded

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Every file is read whole, and holds a stream that came to its end or one JSON
// object; what it was asked is JSON too.
func TestAll(t *testing.T) {
	for _, release := range []string{New, Old} {
		t.Run(release, func(t *testing.T) { testAll(t, release) })
	}
}

func testAll(t *testing.T, release string) {
	all, err := All(release)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range all {
		if !json.Valid(e.Request) || e.Status != 200 {
			t.Errorf("%s: status %d, request %s", name, e.Status, e.Request)
		}
		if strings.HasSuffix(name, ".whole") {
			if !json.Valid(e.Answer) {
				t.Errorf("%s: the answer is no JSON", name)
			}
			continue
		}
		events := e.Events()
		last := events[len(events)-1]
		if !bytes.Equal(last, []byte("[DONE]")) && !bytes.Contains(last, []byte("message_stop")) && !bytes.Contains(last, []byte("response.completed")) &&
			!bytes.Contains(last, []byte("response.incomplete")) {
			t.Errorf("%s: the stream ends with %s", name, last)
		}
		if back, err := Parse(Format(e)); err != nil || !bytes.Equal(back.Answer, e.Answer) || !bytes.Equal(back.Request, e.Request) {
			t.Errorf("%s: written and read again it differs: %v", name, err)
		}
	}
}

// What clients and doors stumbled over is among what is recorded: token ids that are
// null in every event but the first, and the field of a thought, which was renamed.
func TestShapes(t *testing.T) {
	f := func(name, want string, count int) {
		t.Helper()
		release := New
		if strings.HasPrefix(name, "old ") {
			name, release = name[4:], Old
		}
		all, err := All(release)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(all[name].Answer, []byte(want)); got < count {
			t.Errorf("%s: %q stands there %d times; want %d", name, want, got, count)
		}
	}
	f("text-ids.stream", `"prompt_token_ids":[`, 1)
	f("text-ids.stream", `"prompt_token_ids":null`, 10)
	f("text-n2.stream", `"index":1`, 10)
	f("reasoning.stream", `"delta":{"reasoning":"`, 10)
	f("old reasoning.stream", `"delta":{"reasoning_content":"`, 10)
	f("old text-ids.stream", `"prompt_token_ids":null`, 10)
	f("reasoning.stream", `"delta":{"content":"`, 10)
	f("chat-usage-continuous.stream", `"usage":{"prompt_tokens":`, 20)
}
