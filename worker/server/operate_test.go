package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"roundhouse/worker"
	"roundhouse/worker/server"
)

// TestAbort holds that the id of any answer ends its request, and no other, for
// who has the key or where the engine is operated in development mode.
func TestAbort(t *testing.T) {
	r := newRig(t, func(s *server.Config, w *worker.Config) { s.DevMode, w.Pace = true, time.Millisecond })
	f := func(path, id, body string) {
		t.Helper()
		req, _ := http.NewRequest("POST", r.url+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Request-Id", "mine")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		before := r.engine.Stats().Finished[worker.FinishAbort]
		r.post("/abort_requests", object{"request_ids": []string{"mine", id + "s"}})
		if n := r.engine.Stats().Finished[worker.FinishAbort]; n != before {
			t.Errorf("%s: aborted by another's id", path)
		}
		r.post("/abort_requests", object{"request_ids": []string{"another", id}})
		if n := r.engine.Stats().Finished[worker.FinishAbort]; n != before+1 {
			t.Errorf("%s: %s was not aborted", path, id)
		}
	}
	f(texts, "cmpl-mine", `{"prompt":"a","max_tokens":500,"ignore_eos":true,"stream":true}`)
	f(chats, "chatcmpl-mine", `{"messages":[{"role":"user","content":"a"}],"max_tokens":400,"ignore_eos":true,"stream":true}`)
	f(responses, "resp_mine", `{"input":"a","max_output_tokens":400,"ignore_eos":true,"stream":true}`)
	f("/v1/messages", "msg_mine", `{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":400,"ignore_eos":true,"stream":true}`)

	r = newRig(t, nil)
	if code, data := r.post("/abort_requests", "{}"); code != 404 {
		t.Errorf("without key and development mode: %d %s", code, data)
	}
	r = newRig(t, func(s *server.Config, _ *worker.Config) { s.APIKeys = []string{"secret"} })
	if code, data := r.post("/abort_requests", "{}"); code != 401 {
		t.Errorf("without the key: %d %s", code, data)
	}
	if code, _, text := r.header("/abort_requests", "{}", "Authorization", "Bearer secret"); code != 200 {
		t.Errorf("with the key: %d %s", code, text)
	}
}

// TestPause holds that mode decides what becomes of the requests that run.
func TestPause(t *testing.T) {
	r := newRig(t, func(s *server.Config, w *worker.Config) { s.DevMode, w.Pace = true, time.Millisecond })
	f := func(path string, finish worker.Finish) {
		t.Helper()
		resp, err := http.Post(r.url+texts, "application/json", strings.NewReader(`{"prompt":"a","max_tokens":60,"ignore_eos":true,"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		before := r.engine.Stats().Finished[finish]
		if code, data := r.post(path, ""); code != 200 {
			t.Errorf("%s: %d %s", path, code, data)
		}
		if n := r.engine.Stats().Finished[finish]; n != before+1 {
			t.Errorf("%s: the request has not ended with %s", path, finish)
		}
		if _, paused := r.get("/is_paused"); !strings.Contains(paused, "true") {
			t.Errorf("%s: %s", path, paused)
		}
		r.post("/wake_up", "")
		if _, paused := r.get("/is_paused"); !strings.Contains(paused, "false") {
			t.Errorf("%s, woken: %s", path, paused)
		}
	}
	f("/pause?mode=wait", worker.FinishLength)
	f("/pause?mode=abort", worker.FinishAbort)
	f("/pause", worker.FinishAbort)
	f("/sleep?mode=wait", worker.FinishLength)
}
