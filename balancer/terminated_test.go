package balancer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestTerminated terminates one of two vLLM servers under answers of several kinds: it
// aborts what it has, and each comes whole, for the other goes on.
func TestTerminated(t *testing.T) {
	const n = 200
	kinds := []struct{ path, body string }{
		{"/v1/chat/completions", fmt.Sprintf(chatBody, true, `,"max_tokens":200`)},
		{"/v1/chat/completions", fmt.Sprintf(chatBody, true, `,"tools":[{"type":"function","function":{"name":"f"}}]`)},
		{"/v1/chat/completions", fmt.Sprintf(chatBody, false, "")},
		{"/v1/completions", `{"model":"sim","prompt":"count","max_tokens":200,"stream":true}`},
		{"/v1/completions", `{"model":"sim","prompt":"count","max_tokens":200}`},
	}
	f := func(name string, o sim.Options) {
		t.Run(name, func(t *testing.T) {
			o.Words = n
			a, b := sim.New(o), sim.New(o)
			a.TermAfter.Store(n / 2)
			r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) { s.Pools[0].Policy = "round_robin" })
			var all sync.WaitGroup
			for range 2 {
				for _, k := range kinds {
					all.Go(func() {
						resp, got := r.post(k.path, strings.Replace(k.body, `"max_tokens":12,`, "", 1))
						text := textOf(got)
						if strings.Contains(k.body, `"stream":true`) {
							s := hear(t, got)
							if text = s.reasoning + s.text; !s.done || s.failed || len(s.ids) != 1 {
								t.Errorf("%s %.80s: done %v, failed %v, ids %v", k.path, k.body, s.done, s.failed, s.ids)
							}
						}
						if resp.StatusCode != 200 || strings.Replace(text, "</think>", "", 1) != words(0, n) || strings.Contains(got, "abort") {
							t.Errorf("%s %.80s: got %d %.300s … %s", k.path, k.body, resp.StatusCode, text, got[max(0, len(got)-300):])
						}
					})
				}
			}
			all.Wait()
			if more := b.Served.Load(); more <= int64(len(kinds)) {
				t.Errorf("the second server served %d requests: nothing was aborted", more)
			}
		})
	}
	f("plain", sim.Options{})
	f("reasoning", sim.Options{Reason: 120})
	f("without ids", sim.Options{NoIDs: true})
}

// textOf is the text of a whole answer.
func textOf(answer string) string {
	var e struct {
		Choices []struct {
			Text    string
			Message struct{ Content string }
		}
	}
	if json.Unmarshal([]byte(answer), &e) != nil || len(e.Choices) != 1 {
		return ""
	}
	return e.Choices[0].Text + e.Choices[0].Message.Content
}

// TestMessagesAborted has a server abort messages behind each event: another gives them
// again, whole, and streamed the client gets them once, under one id.
func TestMessagesAborted(t *testing.T) {
	all := messagesStream("msg_first")
	const end = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null,\"stop_sequence\":null},\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	for at := 1; at < len(all)-1; at++ {
		var served atomic.Int64
		serve := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if served.Add(1) > 1 {
				io.WriteString(w, strings.Join(messagesStream("msg_second"), ""))
				return
			}
			cut := strings.Join(all[:at], "")
			if strings.Contains(cut, "content_block_start") && !strings.Contains(cut, "content_block_stop") {
				cut += all[len(all)-3]
			}
			io.WriteString(w, cut+end)
		}
		r := stubRig(t, nil, serve, serve)
		if _, got := r.post("/v1/messages", messagesBody); got != strings.Join(all, "") {
			t.Errorf("aborted behind %d events: got\n%s", at, got)
		}
	}
	var served atomic.Int64
	whole := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if served.Add(1) == 1 {
			io.WriteString(w, `{"id":"a","type":"message","role":"assistant","content":[{"type":"text","text":"one"}],"model":"sim","usage":{}}`)
			return
		}
		io.WriteString(w, `{"id":"b","type":"message","role":"assistant","content":[{"type":"text","text":"one two"}],"model":"sim","stop_reason":"end_turn","usage":{}}`)
	}
	r := stubRig(t, nil, whole, whole)
	if _, got := r.post("/v1/messages", strings.Replace(messagesBody, "true", "false", 1)); !strings.Contains(got, "one two") {
		t.Errorf("whole: got %s", got)
	}
}

// TestAbortedByAll has every server abort: a stream ends with one error event, a whole
// answer with an error.
func TestAbortedByAll(t *testing.T) {
	aborts := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"id":"1","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"abort"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, oneEvent+strings.Replace(endEvents, `"stop"`, `"abort"`, 1))
	}
	r := stubRig(t, nil, aborts, aborts)
	_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
	if s := hear(t, got); !s.failed || s.done || strings.Count(got, `{"error"`) != 1 || strings.Contains(got, "abort") {
		t.Errorf("got %s", got)
	}
	if resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, false, "")); resp.StatusCode != 502 || !strings.Contains(got, "worker_failed") {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
}

// engineEnded is what a vLLM answers once its engine has ended.
func engineEnded(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	io.WriteString(w, `{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"Internal Server Error","param":null,"code":500}}`)
}

// TestEngineEnded: a server's engine ends under forty whole answers and streams, which are
// more than the retries' budget: each comes from the other server.
func TestEngineEnded(t *testing.T) {
	const n = 80
	var came, ended atomic.Int64
	all := make(chan struct{})
	serve := func(healthy bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if came.Add(1) == n {
				close(all)
			}
			<-all
			switch {
			case !healthy:
				ended.Add(1)
				engineEnded(w, r)
			case strings.Contains(string(body), `"stream":true`):
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, oneEvent+endEvents)
			default:
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"id":"1","choices":[{"index":0,"message":{"content":"hi."},"finish_reason":"stop"}]}`)
			}
		}
	}
	r := stubRig(t, nil, serve(false), serve(true))
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() {
			if resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, i%2 == 0, "")); resp.StatusCode != 200 || !strings.Contains(got, "hi") {
				t.Errorf("got %d %s", resp.StatusCode, got)
			}
		})
	}
	clients.Wait()
	if ended.Load() < n/4 {
		t.Errorf("%d requests were at the engine that ended", ended.Load())
	}
}

// TestEnginesEnd: a request at which two engines ended is given to no third.
func TestEnginesEnd(t *testing.T) {
	r := stubRig(t, nil, engineEnded, engineEnded, engineEnded)
	if resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, false, "")); resp.StatusCode != 500 || !strings.Contains(got, "workers_died") {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
}
