package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"roundhouse/worker"
	"roundhouse/worker/server"
)

const responses = "/v1/responses"

// call sends a request with a key and returns status and answer.
func (r *rig) call(method, path, key, body string) (int, object) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var out object
	if err := json.Unmarshal(data, &out); err != nil {
		r.t.Fatalf("%s %s: %s", method, path, data)
	}
	return resp.StatusCode, out
}

// TestStoredResponses holds that an answer can be gone on from, read and
// deleted by the key that asked for it, and by no other.
func TestStoredResponses(t *testing.T) {
	r := newRig(t, func(s *server.Config, _ *worker.Config) { s.APIKeys = []string{"a", "b"} })
	_, first := r.call("POST", responses, "a", `{"input":"one two","instructions":"be brief","max_output_tokens":4,"temperature":0,"ignore_eos":true}`)
	id := first["id"].(string)
	if code, got := r.call("GET", responses+"/"+id, "a", ""); code != 200 || text(got) != text(first) {
		t.Errorf("read again: %d %v; want %v", code, got, first)
	}
	next := fmt.Sprintf(`{"input":"three","previous_response_id":%q,"max_output_tokens":4,"temperature":0,"ignore_eos":true,"enable_response_messages":true}`, id)
	code, second := r.call("POST", responses, "a", next)
	if code != 200 || second["previous_response_id"] != id {
		t.Fatalf("%d %v", code, second)
	}
	said := first["output"].([]any)[0].(object)["content"].([]any)[0].(object)["text"].(string)
	prompt := second["input_messages"].([]any)[0].(object)["message"].(string)
	at := 0
	for _, part := range []string{"one two", said, "three"} {
		k := strings.Index(prompt[at:], part)
		if k < 0 {
			t.Fatalf("the prompt %q does not go on from the first answer: no %q", prompt, part)
		}
		at += k
	}
	if strings.Contains(prompt, "be brief") {
		t.Errorf("instructions hold for one answer; the next prompt is %q", prompt)
	}
	// The third goes on from the second, and so from the first.
	_, third := r.call("POST", responses, "a", strings.ReplaceAll(strings.ReplaceAll(next, id, second["id"].(string)), "three", "four"))
	if p := third["input_messages"].([]any)[0].(object)["message"].(string); !strings.Contains(p, "one two") || !strings.Contains(p, "three") {
		t.Errorf("the third prompt is %q", p)
	}
	for _, path := range []string{"GET " + responses + "/" + id, "DELETE " + responses + "/" + id, "POST " + responses + "/" + id + "/cancel"} {
		method, path, _ := strings.Cut(path, " ")
		if code, got := r.call(method, path, "b", ""); code != 404 {
			t.Errorf("%s %s by another key: %d %v", method, path, code, got)
		}
	}
	if code, got := r.call("POST", responses, "b", next); code != 404 || got["error"].(object)["param"] != "response_id" {
		t.Errorf("gone on from by another key: %d %v", code, got)
	}
	if code, got := r.call("POST", responses+"/"+id+"/cancel", "a", ""); code != 400 || !strings.Contains(text(got), "Cannot cancel a synchronous response.") {
		t.Errorf("cancelled: %d %v", code, got)
	}
	if code, _ := r.call("DELETE", responses+"/"+id, "a", ""); code != 200 {
		t.Errorf("deleted: %d", code)
	}
	if code, _ := r.call("GET", responses+"/"+id, "a", ""); code != 404 {
		t.Errorf("read after it was deleted: %d", code)
	}
	_, unstored := r.call("POST", responses, "a", `{"input":"x","store":false,"max_output_tokens":2}`)
	if code, _ := r.call("GET", responses+"/"+unstored["id"].(string), "a", ""); code != 404 {
		t.Errorf("one that was not to be stored: %d", code)
	}
}

// poll asks for an answer until its status is not among those given.
func (r *rig) poll(id string, while ...string) object {
	r.t.Helper()
	for {
		_, a := r.call("GET", responses+"/"+id, "", "")
		status := a["status"].(string)
		under := false
		for _, w := range while {
			under = under || w == status
		}
		if !under {
			return a
		}
	}
}

// TestBackground holds that an answer is made with nobody waiting, can be
// polled, followed from any event on, and cancelled.
func TestBackground(t *testing.T) {
	r := newRig(t, nil)
	_, queued := r.call("POST", responses, "", `{"input":"x","background":true,"max_output_tokens":6,"ignore_eos":true}`)
	if queued["status"] != "queued" {
		t.Fatalf("at once: %v", queued)
	}
	done := r.poll(queued["id"].(string), "queued", "in_progress")
	if done["status"] != "incomplete" || len(done["output"].([]any)) != 1 || done["usage"].(object)["output_tokens"].(float64) != 6 {
		t.Errorf("in the end: %v", done)
	}

	names, events := r.named(responses, object{"input": "x", "background": true, "max_output_tokens": 6, "ignore_eos": true})
	last := events[len(events)-1]["response"].(object)
	if names[0] != "response.created" || names[len(names)-1] != "response.incomplete" {
		t.Fatalf("streamed: %v", names)
	}
	resp, err := http.Get(r.url + responses + "/" + last["id"].(string) + "?stream=true&starting_after=2")
	if err != nil {
		t.Fatal(err)
	}
	data, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if n := strings.Count(string(data), "data: "); n != len(events)-3 || !strings.Contains(string(data), `"sequence_number":3`) {
		t.Errorf("%d events after the third of %d: %s", n, len(events), data)
	}

	release := r.model.Hold()
	_, held := r.call("POST", responses, "", `{"input":"y","background":true,"max_output_tokens":300,"ignore_eos":true}`)
	id := held["id"].(string)
	code, cancelled := r.call("POST", responses+"/"+id+"/cancel", "", "")
	if code != 200 || cancelled["status"] != "cancelled" {
		t.Errorf("cancelled: %d %v", code, cancelled)
	}
	release()
	if a := r.poll(id); a["status"] != "cancelled" {
		t.Errorf("after it was cancelled: %v", a)
	}
	for r.engine.Stats().Finished[worker.FinishAbort] != 1 { // its generation ends with it
		r.engine.WaitIdle(context.Background())
	}
}

// TestBackgroundOutlivesClient holds that an answer in the background goes on
// when the client that follows it leaves.
func TestBackgroundOutlivesClient(t *testing.T) {
	r := newRig(t, func(_ *server.Config, w *worker.Config) { w.Pace = time.Millisecond })
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", r.url+responses, strings.NewReader(`{"input":"x","background":true,"stream":true,"request_id":"resp_mine","max_output_tokens":40,"ignore_eos":true}`))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var b [16]byte
	if _, err := resp.Body.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	// Whose answer it is hangs on the key, which this request did not have.
	for {
		got, err := http.Get(r.url + responses + "/resp_mine")
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if strings.Contains(string(data), `"status":"incomplete"`) {
			break
		}
		if !strings.Contains(string(data), `"status":"in_progress"`) && !strings.Contains(string(data), `"status":"queued"`) {
			t.Fatalf("%d %s", got.StatusCode, data)
		}
	}
}
