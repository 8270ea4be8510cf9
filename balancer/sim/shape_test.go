package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"roundhouse/balancer/sim/recorded"
)

// The events of a worker that stands for vLLM have the fields of vLLM's own, in their
// order, in the first event, in those of tokens and in the last.
func TestShapes(t *testing.T) {
	all, err := recorded.All(recorded.New)
	if err != nil {
		t.Fatal(err)
	}
	w := New(Options{Words: 5})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"chat", "chat-ids", "text", "text-ids"} {
		want := all[name+".stream"]
		body := bytes.Replace(want.Request, []byte(recorded.Model), []byte("sim"), 1)
		res, err := http.Post(w.URL+want.Path, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := recorded.Exchange{Answer: answer}.Events()
		theirs := want.Events()
		for _, at := range []struct{ ours, theirs int }{{0, 0}, {1, 1}, {2, 2}, {len(got) - 2, len(theirs) - 2}} {
			if a, b := fields(t, got[at.ours]), fields(t, theirs[at.theirs]); !slices.Equal(a, b) {
				t.Errorf("%s, event %d has %v; vLLM %v", name, at.ours, a, b)
			}
		}
	}
}

// fields are the names in an event in their order, with the kind of what they hold; of
// a text, there may be some in one and none in the other.
func fields(t *testing.T, event []byte) (list []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(event))
	var walk func(name string)
	walk = func(name string) {
		tok, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		kind := fmt.Sprintf("%T", tok)
		if name == "content" || strings.HasSuffix(name, "fingerprint") {
			kind = "any"
		}
		if name != "content" {
			list = append(list, name+" "+kind)
		}
		if tok == json.Delim('{') {
			for d.More() {
				key, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				walk(key.(string))
			}
			d.Token()
		} else if tok == json.Delim('[') {
			for n := 0; d.More(); n++ {
				before := list
				walk("item")
				if n > 0 || name != "choices" {
					list = before
				}
			}
			d.Token()
		}
	}
	walk("")
	return list
}
