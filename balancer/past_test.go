package balancer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// inside asks the door by its private handler.
func (r *rig) inside(method, path, body string, fields ...string) (int, http.Header, string) {
	r.t.Helper()
	s := httptest.NewServer(r.door.Private())
	defer s.Close()
	req, err := http.NewRequestWithContext(r.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

func (r *rig) into(path string, v any) string {
	r.t.Helper()
	status, _, text := r.inside("GET", path, "")
	if err := json.Unmarshal([]byte(text), v); status != http.StatusOK || err != nil {
		r.t.Fatalf("GET %s: %d %v: %s", path, status, err, text)
	}
	return text
}

// ended lists the requests that ended, once there are n: a client has its answer before
// the door has written it down.
func (r *rig) ended(n int, list *control.EndedRequests) (text string) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d requests have ended", n), func() bool {
		text = r.into("/requests?ended=1", list)
		return len(list.Ended) >= n
	})
	return text
}

// TestEnded: whoever looks for what failed finds it, by whose it was and where it ran,
// and finds no text of it.
func TestEnded(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 5}), sim.New(sim.Options{Words: 5})
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{{Name: "team", SHA256: []string{hashOf("secret-key")}, Models: []string{"*"}}}
	})
	const body = `{"model":"sim","stream":%v,"messages":[{"role":"user","content":"a private prompt"}]}`
	auth := []string{"Authorization", "Bearer secret-key"}
	for i := range 4 {
		if resp, text := r.post("/v1/chat/completions", fmt.Sprintf(body, i%2 == 0), append(auth, "x-request-id", fmt.Sprint("good-", i))...); resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode, text)
		}
	}
	r.post("/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"x"}]}`, append(auth, "x-request-id", "unknown-model")...)
	for _, w := range r.workers {
		w.Status.Store(500)
	}
	r.post("/v1/chat/completions", fmt.Sprintf(body, false), append(auth, "x-request-id", "bad")...)
	var list control.EndedRequests
	text := r.ended(6, &list)
	if strings.Contains(text, "private prompt") || strings.Contains(text, "secret-key") {
		t.Errorf("text or a key is listed: %s", text)
	}
	if len(list.Ended) != 6 || list.Ended[0].ID != "bad" || list.Ended[5].ID != "good-0" {
		t.Fatalf("not the newest first: %s", text)
	}
	switch e := list.Ended[0]; {
	case e.Outcome != "failed" || e.Status != 500 || e.Worker == nil || *e.Key != "team" || e.Streamed || e.TTFTSeconds != nil:
		t.Errorf("the failed one: %+v", e)
	}
	if e := list.Ended[1]; e.Outcome != "refused" || e.Status != 404 || e.Reason == nil || *e.Reason != "model_not_found" || e.Worker != nil {
		t.Errorf("the refused one: %+v", e)
	}
	e := list.Ended[5]
	if e.Outcome != "ok" || !e.Streamed || e.GeneratedTokens == nil || *e.GeneratedTokens != 5 || *e.Pool != "p" || *e.Model != "sim" ||
		e.Reason != nil || e.TTFTSeconds == nil || e.Seconds < *e.TTFTSeconds || e.End.Before(e.Began) || e.Door != "door-1" {
		t.Errorf("a good one: %+v", e)
	}
	for query, want := range map[string]int{"limit=2": 2, "outcome=failed,refused": 2, "key=team": 6, "key=other": 0, "model=sim&outcome=ok": 4, "pool=none": 0, "limit=x": 6} {
		var some control.EndedRequests
		if text := r.into("/requests?ended=1&"+query, &some); len(some.Ended) != want {
			t.Errorf("%s: %d; want %d: %s", query, len(some.Ended), want, text)
		}
	}
	s := r.door.State()
	if len(s.Pools) != 2 || s.Pools[0].Name != "" || s.Pools[1].OK != 4 || s.Pools[1].Failed != 1 {
		t.Errorf("the counts of the pool: %+v", s.Pools)
	}
	first := int64(0)
	for _, n := range s.Pools[1].TTFT {
		first += n
	}
	if first != 4 { // what failed has none
		t.Errorf("%d first tokens are counted; want 4", first)
	}
}

// TestFailuresOutlast: thousands of good requests do not push out one that failed.
func TestFailuresOutlast(t *testing.T) {
	w := sim.New(sim.Options{Words: 1})
	r := newRig(t, []*sim.Worker{w}, nil)
	w.Status.Store(500)
	r.post("/v1/chat/completions", okBody, "x-request-id", "bad")
	w.Status.Store(0)
	r.until("the worker serves again", func() bool { resp, _ := r.post("/v1/chat/completions", okBody); return resp.StatusCode == 200 })
	for range 2100 {
		r.post("/v1/chat/completions", okBody)
	}
	var list control.EndedRequests
	r.into("/requests?ended=1&limit=2560&outcome=failed", &list)
	if n := len(list.Ended); n == 0 || list.Ended[n-1].ID != "bad" {
		t.Errorf("the failed one is gone: %d others", n)
	}
	r.into("/requests?ended=1&limit=9999", &list)
	if n := len(list.Ended); n < 2048 || n > 2560 {
		t.Errorf("%d requests are kept; want 2048 and those that failed", n)
	}
}

// TestDecisionsListed: the last choices are there for whoever has no id at hand.
func TestDecisionsListed(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true}), sim.New(sim.Options{Own: true})}, nil)
	var list control.Decisions
	if r.into("/decisions", &list); len(list.Decisions) != 0 {
		t.Errorf("before any choice: %+v", list)
	}
	for i := range 3 {
		r.post("/v1/chat/completions", okBody, "x-request-id", fmt.Sprint("n", i))
	}
	r.into("/decisions?limit=2", &list)
	if len(list.Decisions) != 2 || list.Decisions[0].Request != "n2" || list.Decisions[1].Request != "n1" || len(list.Decisions[0].Candidates) != 2 {
		t.Errorf("the last two: %+v", list.Decisions)
	}
	if r.into("/decisions?pool=other", &list); len(list.Decisions) != 0 {
		t.Errorf("of another pool: %+v", list.Decisions)
	}
}

// TestTry: whoever may ask the door's own socket sends a request to the worker that he
// names, without a key, and it is booked like any other.
func TestTry(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Salt: "A"}), sim.New(sim.Options{Own: true, Salt: "B"})
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{{Name: "team", SHA256: []string{hashOf("secret-key")}, Models: []string{"*"}}}
	})
	for i, salt := range []string{"A", "B", "B", "A"} {
		id := "p/" + string('1'+salt[0]-'A')
		for _, stream := range []bool{false, true} {
			status, head, text := r.inside("POST", "/try/v1/chat/completions", fmt.Sprintf(chatBody, stream, ""), "X-Roundhouse-Worker", id, "x-request-id", fmt.Sprintf("try-%d-%v", i, stream))
			if status != 200 || head.Get("X-Roundhouse-Worker") != id || !strings.Contains(text, salt) {
				t.Errorf("to %s, stream %v: %d by %q: %.200s", id, stream, status, head.Get("X-Roundhouse-Worker"), text)
			}
			var dec control.Decision
			if r.into(fmt.Sprintf("/decisions/try-%d-%v", i, stream), &dec); dec.Chosen != id {
				t.Errorf("the decision says %+v", dec)
			}
		}
	}
	var list control.EndedRequests
	if r.ended(8, &list); len(list.Ended) != 8 || list.Ended[0].Priority != "low" || list.Ended[0].Outcome != "ok" {
		t.Errorf("as they ended: %+v", list.Ended)
	}
	if status, _, text := r.inside("POST", "/try/v1/chat/completions", okBody); status != 200 {
		t.Errorf("to any worker: %d %s", status, text)
	}
	for name, c := range map[string]struct {
		body, worker, says string
		status             int
	}{
		"a worker that is not there": {okBody, "p/9", "no worker", 404},
		"a model that is not there":  {`{"model":"none","messages":[{"role":"user","content":"x"}]}`, "p/1", "none", 404},
		"a body that is none":        {`{`, "p/1", "", 400},
	} {
		if status, _, text := r.inside("POST", "/try/v1/chat/completions", c.body, "X-Roundhouse-Worker", c.worker); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if resp, _ := r.post("/v1/chat/completions", okBody, "X-Roundhouse-Worker", "p/1"); resp.StatusCode != 401 {
		t.Errorf("a client names a worker and needs no key: %d", resp.StatusCode)
	}
	r.reset(func(list []control.Worker) { list[0].State = "draining" })
	if status, _, text := r.inside("POST", "/try/v1/chat/completions", okBody, "X-Roundhouse-Worker", "p/1"); status != 503 || !strings.Contains(text, "p/1") {
		t.Errorf("to one that drains: %d %s", status, text)
	}
}

// TestTryPassesThrough: what passes through is tried too, at the worker that is named and
// without a key.
func TestTryPassesThrough(t *testing.T) {
	a, b := newStudio(t, "a"), newStudio(t, "b")
	r := studioRig(t, "image", func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{{Name: "team", SHA256: []string{hashOf("secret-key")}, Models: []string{"*"}}}
	}, a, b)
	const body = `{"model":"studio","prompt":"a locomotive"}`
	for _, id := range []string{"p/a", "p/b", "p/b", "p/a"} {
		if status, head, text := r.inside("POST", "/try/v1/images/generations", body, "X-Roundhouse-Worker", id); status != 200 || head.Get("X-Roundhouse-Worker") != id || text != `{"data":[]}` {
			t.Errorf("to %s: %d by %q: %s", id, status, head.Get("X-Roundhouse-Worker"), text)
		}
	}
	if status, _, text := r.inside("POST", "/try/v1/images/generations", body, "X-Roundhouse-Worker", "p/c"); status != 404 {
		t.Errorf("to one that is not there: %d %s", status, text)
	}
	if resp, text := r.post("/v1/images/generations", body, "X-Roundhouse-Worker", "p/a"); resp.StatusCode != 401 {
		t.Errorf("a client without a key: %d %s", resp.StatusCode, text)
	}
}

// TestTryNamesOnlyInside: a client's own header does not choose a worker.
func TestTryNamesOnlyInside(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true})}, nil)
	if resp, text := r.post("/v1/chat/completions", okBody, "X-Roundhouse-Worker", "p/9"); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// TestTryGoesOn: a stream to one worker that dies in the middle goes on at another.
func TestTryGoesOn(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 20}), sim.New(sim.Options{Own: true, Words: 20})
	r := newRig(t, []*sim.Worker{a, b}, nil)
	a.DieAfter.Store(5)
	status, _, text := r.inside("POST", "/try/v1/chat/completions", fmt.Sprintf(chatBody, true, ""), "X-Roundhouse-Worker", "p/1", "x-request-id", "moved")
	if status != 200 || !strings.Contains(text, "[DONE]") {
		t.Fatalf("%d %s", status, text)
	}
	var list control.EndedRequests
	if r.ended(1, &list); len(list.Ended) != 1 || list.Ended[0].Resumes != 1 || *list.Ended[0].Worker != "p/2" {
		t.Errorf("%+v", list.Ended)
	}
}

// TestSaid: what a worker's metrics tell of its cache and device comes with its state;
// what they do not tell is not there.
func TestSaid(t *testing.T) {
	w := sim.New(sim.Options{})
	w.Lie.Store("process_start_time_seconds 1\nvllm:num_preemptions_total{engine=\"0\"} 3\nvllm:num_preemptions_total{engine=\"1\"} 4\n" +
		"vllm:prefix_cache_queries_total 200\nvllm:prefix_cache_hits_total 50\n" +
		"roundhouse_device_utilization_ratio{device=\"Arc B60\",pci=\"0000:18:00.0\"} 0.75\nroundhouse_device_memory_used_bytes{device=\"Arc B60\"} 2e10\n")
	bare := sim.New(sim.Options{})
	bare.Lie.Store("process_start_time_seconds 1\n")
	r := newRig(t, []*sim.Worker{w, bare}, nil)
	var s []control.WorkerState
	r.until("it has told", func() bool {
		s = r.door.State().Workers
		return s[0].Preemptions != nil
	})
	if v := s[0]; v.Preemptions == nil || *v.Preemptions != 7 || v.PrefixHits == nil || *v.PrefixHits != 0.25 || v.Device == nil ||
		*v.Device.Name != "Arc B60" || *v.Device.Busy != 0.75 || *v.Device.MemoryUsed != 2e10 || v.Device.Power != nil {
		t.Errorf("%+v", v)
	}
	if v := s[1]; v.Preemptions != nil || v.PrefixHits != nil || v.Device != nil {
		t.Errorf("of a worker that tells nothing: %+v", v)
	}
}
