package resume

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"roundhouse/balancer/sim/recorded"
	"roundhouse/balancer/wire"
)

// opened opens a stream for a recorded request, as the door does.
func opened(t *testing.T, path string, body []byte) *run {
	apis := map[string]API{"/v1/chat/completions": Chat, "/v1/completions": Text, "/v1/messages": Messages, "/v1/responses": Responses}
	api, ok := apis[path]
	if !ok {
		t.Fatalf("a stream of %s", path)
	}
	return begin(kind{api: api, body: strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(body)), "{"), "}")})
}

// streams are the recorded streams of both releases.
func streams(t *testing.T, f func(t *testing.T, e recorded.Exchange)) {
	for _, release := range []string{recorded.New, recorded.Old} {
		all, err := recorded.All(release)
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range all {
			if strings.HasSuffix(name, ".stream") && e.Status == 200 {
				t.Run(release+"/"+name, func(t *testing.T) { f(t, e) })
			}
		}
	}
}

// TestRecorded ends what real vLLM servers sent behind every fourth event, and has
// another server send the same under other ids: the client gets the whole once.
func TestRecorded(t *testing.T) {
	told := regexp.MustCompile(`"prompt_token_ids":\[[^]]*\]`)
	streams(t, func(t *testing.T, e recorded.Exchange) {
		e.Answer = told.ReplaceAll(e.Answer, []byte(`"prompt_token_ids":null`)) // else it would go on by them
		r := opened(t, e.Path, e.Request)
		if err := r.feed(string(e.Answer), nil); err != nil || !r.s.Ended() {
			t.Fatalf("uncut: %v, ended %v", err, r.s.Ended())
		}
		want := r.out
		again := other(e.Answer)
		at := 0
		for n := 0; ; n++ {
			end := wire.NextEvent(e.Answer[at:])
			if end == 0 || n > 0 && r.api > Text && r.s.Ended() && at+end == len(e.Answer) {
				break
			}
			if at += end; n%4 != 0 {
				continue
			}
			r := opened(t, e.Path, e.Request)
			if err := r.feed(string(e.Answer[:at]), nil); err != nil {
				t.Fatal(err)
			}
			var o Out
			if r.s.Close(&o) {
				r.out = append(r.out, o.B...)
			} else if !r.s.Broke(e.Request, 4096) || r.s.Way() != Again {
				t.Fatalf("behind %d bytes it goes on by way %d", at, r.s.Way())
			} else if err := r.feed(string(again), nil); err != nil {
				t.Fatalf("behind %d bytes: %v", at, err)
			}
			if err := same(t, r.api, want, r.out); err != nil {
				t.Fatalf("behind %d bytes: %v", at, err)
			}
		}
	})
}

// other is an answer under other ids.
func other(answer []byte) []byte {
	out := answer
	for _, id := range idsOf(nil, answer) {
		if at := bytes.LastIndexAny(id, "-_"); at > 0 {
			out = bytes.ReplaceAll(out, id, append(bytes.Clone(id[:at+1]), "0ther"...))
		}
	}
	return out
}

// TestRecordedIDs takes the token ids out of what real servers sent when they were
// asked for them, and goes on by those.
func TestRecordedIDs(t *testing.T) {
	asked := 0
	streams(t, func(t *testing.T, e recorded.Exchange) {
		if !bytes.Contains(e.Request, []byte(`"return_token_ids":true`)) {
			return
		}
		asked++
		ask := bytes.ReplaceAll(e.Request, []byte(`"return_token_ids":true,`), nil)
		r := opened(t, e.Path, ask)
		half := bytes.Index(e.Answer[len(e.Answer)/2:], []byte("\n\n")) + len(e.Answer)/2 + 2
		if err := r.feed(string(e.Answer[:half]), nil); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(r.out, []byte("token_ids")) {
			t.Errorf("the client sees what it did not ask for: %s", r.out)
		}
		if !r.s.Broke(ask, 4096) || r.s.Way() != ByIDs {
			t.Fatalf("it goes on by way %d", r.s.Way())
		}
		var next struct {
			Prompt []int32 `json:"prompt"`
		}
		if err := json.Unmarshal(r.s.Next().Body, &next); err != nil {
			t.Fatal(err)
		}
		var want []int32
		for _, field := range []string{`"prompt_token_ids"`, `"token_ids"`} {
			for _, ev := range bytes.SplitAfter(e.Answer[:half], []byte("\n\n")) {
				if v, ok := wire.Field(ev, field); ok {
					want = wire.Ints(want, v)
				}
			}
		}
		if !slices.Equal(next.Prompt, want) {
			t.Errorf("it goes on behind %v; want %v", next.Prompt, want)
		}
	})
	if asked == 0 {
		t.Error("no recorded request asks for token ids")
	}
}
