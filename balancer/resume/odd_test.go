package resume

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"roundhouse/balancer/wire"
)

// TestDiffers has another worker give another answer: the client gets none of it,
// and the stream ends with an error.
func TestDiffers(t *testing.T) {
	f := func(name string, api API, body string, first, then fake) {
		t.Run(name, func(t *testing.T) {
			k := kind{api: api, body: body, worker: first, second: func(f *fake) { n := f.name; *f = then; f.name = n }}
			_, sent := uncut(t, k, 0)
			cut := len(sent) * 2 / 3
			r := begin(k)
			whole, err := r.live([]int{cut}, nil)
			if whole || !errors.Is(err, ErrDiffers) {
				t.Fatalf("whole %v, %v\n%s", whole, err, r.out)
			}
			if bytes.Contains(r.out, []byte("two22")) || bytes.Contains(r.out, []byte("[DONE]")) {
				t.Errorf("two answers are mixed: %s", r.out)
			}
		})
	}
	long, short, thinks := fake{words: 9, noIDs: true}, fake{words: 2, noIDs: true}, fake{words: 9, noIDs: true, thought: 3, field: "reasoning"}
	f("it ends before", Chat, chatBody, long, short)
	f("it says something else", Chat, chatBody, long, thinks)
	f("it has fewer log probabilities", Chat, chatBody+`,"logprobs":true`, long, fake{words: 9, noIDs: true, each: 9, mute: true})
	f("messages, it ends before", Messages, chatBody, fake{words: 9}, fake{words: 2})
	f("responses, it ends before", Responses, chatBody, fake{words: 9}, fake{words: 2})
	f("two names in one event", Chat, chatBody+`,"tools":[{"type":"function"}]`, fake{words: 8, calls: 4}, fake{words: 8, calls: 4, bundle: true})
}

// TestWorkerErrors feeds error events: a mistake of the client's is passed on and
// ends the answer, a fault of the worker's ends its part.
func TestWorkerErrors(t *testing.T) {
	f := func(api API, event string, mistake bool) {
		t.Helper()
		r := begin(kind{api: api, body: chatBody, worker: fake{words: 3}})
		var o Out
		got, err := r.s.Take(&o, []byte(event))
		if got.Refused != mistake || mistake != (err == nil) || mistake != r.s.Ended() || mistake != (len(o.B) > 0) || !mistake && !errors.Is(err, ErrEvent) {
			t.Errorf("%s: got %+v, %v, ended %v, %q", event, got, err, r.s.Ended(), o.B)
		}
	}
	f(Chat, "data: {\"error\":{\"message\":\"x\",\"code\":400}}\n\n", true)
	f(Chat, "data: {\"error\":{\"message\":\"x\",\"code\":500}}\n\n", false)
	f(Messages, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"x\"}}\n\n", true)
	f(Messages, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}\n\n", false)
	f(Responses, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\"}\n\n", false)
}

// TestNoWay breaks streams that nothing can carry on.
func TestNoWay(t *testing.T) {
	f := func(name string, k kind, body func([]byte) []byte) {
		t.Run(name, func(t *testing.T) {
			r := begin(k)
			text := r.ask("one", true)
			if err := r.feed(text[:len(text)/2], nil); err != nil {
				t.Fatal(err)
			}
			if body == nil {
				body = func(b []byte) []byte { return b }
			}
			if r.s.Events() == 0 || !r.s.Advanced() || r.s.Advanced() || r.s.Broke(body([]byte("{"+k.body+"}")), 0) || r.s.Resumed() {
				t.Errorf("events %d, way %d", r.s.Events(), r.s.Way())
			}
		})
	}
	plain := fake{words: 8}
	f("it may not", kind{api: Chat, body: chatBody, worker: plain, never: true}, nil)
	f("an upload's", kind{api: Other, body: chatBody, worker: plain}, nil)
	f("its request is gone", kind{api: Chat, body: chatBody, worker: plain}, func([]byte) []byte { return nil })
	f("its request has changed", kind{api: Chat, body: chatBody, worker: plain}, func([]byte) []byte { return []byte("{") })
	f("too many choices", kind{api: Chat, body: chatBody + `,"n":300`, worker: fake{words: 1}}, nil)
	f("an event of several choices", kind{api: Chat, body: chatBody + `,"n":2`, worker: fake{words: 4, both: true}}, nil)
}

// TestStrictWorker begins a stream without the door's own fields.
func TestStrictWorker(t *testing.T) {
	r := begin(kind{api: Chat, body: chatBody, worker: fake{words: 6}})
	r.s.WithoutIDs()
	if r.s.IDs() {
		t.Fatal("ids are asked for")
	}
	text := r.ask("one", true)
	if whole, err := r.live([]int{len(text) / 2}, nil); err != nil || !whole || r.ways[len(r.ways)-1] != Again {
		t.Fatalf("whole %v, %v, ways %v", whole, err, r.ways)
	}
	r.s.WithoutIDs() // too late, and of no effect
	want, _ := uncut(t, kind{api: Chat, body: chatBody, worker: fake{words: 6}}, 0)
	if err := same(t, Chat, want, r.out); err != nil {
		t.Error(err)
	}
}

// TestName puts the name that the client asked for into every event.
func TestName(t *testing.T) {
	for _, k := range kinds() {
		r := begin(k)
		r.s.a.Name = "alias"
		text := r.ask("one", true)
		if whole, err := r.live([]int{len(text) / 2}, nil); err != nil || !whole {
			t.Fatalf("%s: whole %v, %v", k.name, whole, err)
		}
		if bytes.Contains(r.out, []byte(`"model":"m"`)) || !bytes.Contains(r.out, []byte(`"model":"alias"`)) {
			t.Errorf("%s: %s", k.name, r.out)
		}
	}
}

// TestPlainAsked reads from a request whether token ids tell all of it.
func TestPlainAsked(t *testing.T) {
	f := func(extra string, want bool) {
		t.Helper()
		body := []byte("{" + chatBody + extra + "}")
		var p wire.Peek
		if err := wire.PeekBody(body, &p); err != nil {
			t.Fatal(err)
		}
		if got := plainAsked(&Asked{API: Chat, Peek: &p, Body: body}); got != want {
			t.Errorf("%s: %v", extra, got)
		}
	}
	f("", true)
	f(`,"presence_penalty":0,"frequency_penalty":null,"repetition_penalty":1.0,"min_tokens":0`, true)
	f(`,"presence_penalty":-1`, false)
	f(`,"repetition_penalty":1.1`, false)
	f(`,"repetition_penalty":"x"`, false)
	f(`,"continue_final_message":false`, true)
	f(`,"continue_final_message":true`, false)
	f(`,"response_format":{"type":"text"}`, true)
	f(`,"response_format":{"type":"json_object"}`, false)
	f(`,"response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"text":{"type":"string"}}}}}`, false)
	f(`,"structured_outputs":{"regex":"a"}`, false)
	f(`,"tools":[]`, true)
	f(`,"seed":3`, false)
}

// TestLongEvents bounds one event, and lets the ids of a long prompt through.
func TestLongEvents(t *testing.T) {
	k := kind{api: Chat, body: strings.Replace(chatBody, `"x"`, `"`+strings.Repeat("x ", 1<<20)+`"`, 1), worker: fake{words: 2}}
	r := begin(k)
	ids := strings.Repeat("100000,", 1<<20)
	event := fmt.Sprintf("data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"prompt_token_ids\":[%s1]}\n\n", ids)
	var o Out
	for len(event) > 0 {
		n := min(len(event), 1<<16)
		if _, err := r.s.Take(&o, []byte(event[:n])); err != nil {
			t.Fatal(err)
		}
		event = event[n:]
	}
	if len(o.B) == 0 || len(o.B) > 200 || len(r.s.choices[0].prompt) != 1<<20+1 {
		t.Errorf("%d bytes, %d ids", len(o.B), len(r.s.choices[0].prompt))
	}
	r = begin(kind{api: Chat, body: chatBody, worker: fake{words: 2}})
	if _, err := r.s.Take(&o, bytes.Repeat([]byte("x"), 5<<20)); err == nil {
		t.Error("an event without an end is held for ever")
	}
}

// TestByIDsOddities feeds a stream that goes on by ids with other than it should be.
func TestByIDsOddities(t *testing.T) {
	f := func(name, event string) {
		r := begin(kind{api: Chat, body: strings.Replace(chatBody, "40", "5", 1) + `,"stop":"STOP"`, worker: fake{words: 9}})
		text := r.ask("one", true)
		if err := r.feed(text[:len(text)*2/3], nil); err != nil {
			t.Fatal(err)
		}
		if !r.s.Broke([]byte("{"+r.body+"}"), 0) || r.s.Way() != ByIDs {
			t.Fatal("it does not go on by ids")
		}
		var o Out
		if _, err := r.s.Take(&o, []byte("data: "+event+"\n\n")); err == nil || len(o.B) > 0 {
			t.Errorf("%s: %v, %q", name, err, o.B)
		}
	}
	f("no JSON", `{"choices":[{"text":"a`)
	f("no choice", `{"choices":[{"text":"a"},{"text":"b"}]}`)
	f("another text than what was said already", `{"choices":[{"index":0,"text":"other","token_ids":[1]}]}`)
	f("more than is left", `{"choices":[{"index":0,"text":"é","token_ids":[1,2,3,4,5,6,7]}]}`)
}
