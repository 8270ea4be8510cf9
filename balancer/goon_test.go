package balancer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestForbiddenField has a worker that refuses fields that it does not know: it is
// asked again without the door's, and from then on at once.
func TestForbiddenField(t *testing.T) {
	var refused, served atomic.Int64
	r := stubRig(t, nil, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), "return_token_ids") {
			refused.Add(1)
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"message":"extra_forbidden: body.return_token_ids","code":400}}`)
			return
		}
		served.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, oneEvent+endEvents)
	})
	for range 3 {
		resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
		if s := hear(t, got); resp.StatusCode != 200 || !s.done || s.failed {
			t.Fatalf("got %d %s", resp.StatusCode, got)
		}
	}
	if refused.Load() != 1 || served.Load() != 3 {
		t.Errorf("the worker refused %d requests and served %d; want 1 and 3", refused.Load(), served.Load())
	}
	// The client's own field is its own affair.
	if resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, `,"return_token_ids":true`)); resp.StatusCode != 400 || !strings.Contains(got, "extra_forbidden") {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
}

// messagesStream is an answer of /v1/messages, whose ids are drawn by whoever says it.
func messagesStream(id string) (events []string) {
	put := func(name, rest string) {
		events = append(events, fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", name, name, rest))
	}
	put("message_start", fmt.Sprintf(`,"message":{"id":%q,"role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":0}}`, id))
	put("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	for _, text := range []string{"one ", "two ", "three"} {
		put("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, text))
	}
	put("content_block_stop", `,"index":0`)
	put("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":3,"output_tokens":3}`)
	put("message_stop", "")
	return events
}

const messagesBody = `{"model":"sim","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}`

// TestMessagesGoOn ends a worker after each event of a messages stream: another
// gives the answer again, and the client gets it once, under one id.
func TestMessagesGoOn(t *testing.T) {
	all := messagesStream("msg_first")
	for dies := 1; dies < len(all); dies++ {
		var served atomic.Int64
		serve := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if served.Add(1) == 1 {
				io.WriteString(w, strings.Join(all[:dies], ""))
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, strings.Join(messagesStream("msg_second"), ""))
		}
		r := stubRig(t, nil, serve, serve)
		if _, got := r.post("/v1/messages", messagesBody); got != strings.Join(all, "") {
			t.Errorf("dead after %d events: got\n%s", dies, got)
		}
	}
}

// TestMessagesErrors looks at the shape of errors on the paths that have their own.
func TestMessagesErrors(t *testing.T) {
	shaped := func(got string) bool {
		return strings.Contains(got, `{"type":"error","error":{"type":"`) && !strings.Contains(got, `"param"`)
	}
	w := sim.New(sim.Options{})
	r := newRig(t, []*sim.Worker{w}, nil)
	f := func(name, body string, status int, kind string) {
		t.Helper()
		resp, got := r.post("/v1/messages", body)
		if resp.StatusCode != status || !shaped(got) || !strings.Contains(got, kind) {
			t.Errorf("%s: got %d %s", name, resp.StatusCode, got)
		}
	}
	f("no JSON", `{`, 400, "invalid_request_error")
	f("a model that is not there", `{"model":"other","messages":[{"role":"user","content":"x"}]}`, 404, "not_found_error")
	broken := stubRig(t, func(s *control.WorkerSet) { s.Door.Resume.Enabled = false }, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, strings.Join(messagesStream("a")[:3], ""))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	_, got := broken.post("/v1/messages", messagesBody)
	if last := got[strings.LastIndex(got, "event: "):]; !strings.HasPrefix(last, "event: error\n") || !shaped(last) {
		t.Errorf("got %q", last)
	}
	_, got = broken.post("/v1/responses", `{"model":"sim","stream":true,"input":"x"}`)
	if last := got[strings.LastIndex(got, "event: "):]; !strings.HasPrefix(last, "event: error\ndata: {\"type\":\"error\",\"code\":\"worker_failed\"") {
		t.Errorf("got %q", last)
	}
}
