package balancer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func TestKeys(t *testing.T) {
	const canary = "sk-canary-5d1f0"
	w := sim.New(sim.Options{Own: true, Words: 2})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{
			{Name: "a", SHA256: []string{hashOf("other"), hashOf(canary)}, Models: []string{"*"}, RequestsPerMinute: 3, Priority: "normal"},
			{Name: "b", SHA256: []string{hashOf("key-b")}, Models: []string{"another"}},
			{Name: "c", SHA256: []string{hashOf("key-c")}, TokensPerMinute: 10},
		}
		s.Log.Access = true
	})
	f := func(name string, want int, contains string, header ...string) {
		t.Helper()
		resp, got := r.post("/v1/chat/completions", okBody, header...)
		if resp.StatusCode != want || !strings.Contains(got, contains) || want == 429 && resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s %v; want %d", name, resp.StatusCode, got, resp.Header, want)
		}
		if strings.Contains(got, canary) {
			t.Errorf("%s: the key stands in the answer", name)
		}
	}
	f("no key", 401, "API key")
	f("wrong key", 401, "API key", "Authorization", "Bearer x"+canary)
	f("empty key", 401, "API key", "Authorization", "Bearer ")
	f("good", 200, "0 1", "Authorization", "Bearer "+canary)
	f("old key overlaps", 200, "0 1", "Authorization", "bearer other")
	f("as the messages API has it", 200, "0 1", "X-Api-Key", canary)
	f("requests used up", 429, "requests a minute", "Authorization", "Bearer "+canary)
	f("a model that is not the key's", 404, "does not exist", "Authorization", "Bearer key-b")
	f("tokens, the first", 200, "0 1", "Authorization", "Bearer key-c")
	f("tokens used up", 429, "tokens a minute", "Authorization", "Bearer key-c")
	if text := r.metrics(); strings.Contains(text, canary) || !strings.Contains(text, `roundhouse_refused_total{pool="",reason="auth"} 3`) {
		t.Errorf("metrics: %s", text)
	}
	for _, body := range w.Bodies() {
		if strings.Contains(body, canary) {
			t.Error("the key reached a worker")
		}
	}
}

// TestQueue fills the one worker and looks at who comes next.
func TestQueue(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 5, Capacity: 400})
	w.Hang.Store(true)
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Queue = configs.Queue{MaxRequests: 3, MaxWait: configs.Duration(50 * time.Millisecond)}
	})
	var wg sync.WaitGroup
	status := make(chan int, 16)
	ask := func(priority string) {
		wg.Go(func() {
			resp, _ := r.post("/v1/chat/completions", okBody, "x-roundhouse-priority", priority)
			status <- resp.StatusCode
		})
	}
	occupy := func() (leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		before := w.Served.Load()
		req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(okBody))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if resp, err := r.client.Do(req); err == nil {
				resp.Body.Close()
			}
		})
		r.until("the worker is full", func() bool { return w.Served.Load() > before })
		return cancel
	}
	leave := occupy()
	ask("normal")
	if s := <-status; s != 504 {
		t.Errorf("waited too long: got %d", s)
	}
	set := r.set
	set.Version, set.Door.Queue.MaxWait = 2, configs.Duration(time.Minute)
	if _, err := r.door.Apply(set); err != nil {
		t.Fatal(err)
	}
	ask("low")
	r.until("one waits", func() bool { return len(r.door.Queued()) == 1 })
	ask("normal")
	r.until("two wait", func() bool { return len(r.door.Queued()) == 2 })
	for _, q := range r.door.Queued() {
		if want := map[string]int{"normal": 1, "low": 2}[q.Priority]; q.Position != want {
			t.Errorf("%s stands at %d; want %d", q.Priority, q.Position, want)
		}
	}
	ask("normal")
	r.until("three wait", func() bool { return len(r.door.Queued()) == 3 })
	resp, got := r.post("/v1/chat/completions", okBody)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(got, "queue_full") {
		t.Errorf("a full queue answers %d %s", resp.StatusCode, got)
	}
	w.Hang.Store(false)
	leave() // room
	for range 3 {
		if s := <-status; s != 200 {
			t.Errorf("after there was room: got %d", s)
		}
	}
	wg.Wait()
	if n := len(r.door.Queued()); n != 0 {
		t.Errorf("%d are left in the queue", n)
	}
}

func TestFailover(t *testing.T) {
	bad, good := sim.New(sim.Options{Own: true}), sim.New(sim.Options{Own: true, Words: 2})
	r := newRig(t, []*sim.Worker{bad, good}, nil)
	f := func(name string, how func(), want int) {
		t.Run(name, func(t *testing.T) {
			how()
			for range 6 {
				if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != want {
					t.Errorf("got %d %s; want %d", resp.StatusCode, got, want)
				}
			}
			bad.Status.Store(0)
			good.Status.Store(0)
		})
	}
	f("a client's mistake does not", func() { bad.Status.Store(422); good.Status.Store(422) }, 422)
	for _, w := range r.door.State().Workers {
		if w.State != "ready" {
			t.Errorf("%s is %s after clients' mistakes", w.ID, w.State)
		}
	}
	f("500 goes elsewhere", func() { bad.Status.Store(500) }, 200)
	f("503 goes elsewhere", func() { bad.Status.Store(503) }, 200)
	bad.Stop()
	for range 10 {
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
			t.Errorf("a dead worker: got %d %s", resp.StatusCode, got)
		}
	}
	if err := bad.Start(); err != nil {
		t.Fatal(err)
	}
}

// splitPool makes two pools, the second named q, of one with two workers.
func splitPool(s *control.WorkerSet) {
	p := s.Pools[0]
	q := p
	p.Workers, q.Workers, q.Name = p.Workers[:1], p.Workers[1:], "q"
	s.Pools = []control.Pool{p, q}
}

func TestRoutes(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 1, Model: "m-a", Salt: "a"}), sim.New(sim.Options{Own: true, Words: 1, Model: "m-b", Salt: "b"})
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) {
		splitPool(s)
		targets := []configs.Target{{Model: "m-a", Weight: 30}, {Model: "m-b", Weight: 10}}
		s.Routes = []configs.Route{
			{Name: "mix", Aliases: []string{"blend"}, Targets: targets},
			{Name: "stick", Sticky: "session", Targets: targets},
			{Name: "gone", Targets: []configs.Target{{Model: "nobody", Weight: 1}}, Fallback: "q"},
			{Name: "kept", Aliases: []string{"same"}, Targets: []configs.Target{{Model: "m-a", Weight: 1}}, KeepName: true},
		}
	})
	ask := func(model, session string) string {
		_, got := r.post("/v1/chat/completions", strings.Replace(okBody, `"sim"`, `"`+model+`"`, 1), "x-session-id", session)
		switch {
		case strings.Contains(got, "a0"):
			return "a"
		case strings.Contains(got, "b0"):
			return "b"
		}
		return got
	}
	count := 0
	for range 40 {
		if ask("blend", "") == "a" {
			count++
		}
	}
	if count != 30 {
		t.Errorf("of 40 requests %d went to the target of weight 30", count)
	}
	share := 0
	for i := range 400 {
		s := fmt.Sprint("session-", i)
		one := ask("stick", s)
		if one == "a" {
			share++
		}
		if i < 20 && ask("stick", s) != one {
			t.Errorf("%s did not stick", s)
		}
	}
	if sigma := math.Sqrt(400 * .75 * .25); math.Abs(float64(share)-300) > 3*sigma {
		t.Errorf("of 400 sessions %d stick to the target of three quarters", share)
	}
	if got := ask("gone", ""); got != "b" {
		t.Errorf("the fallback gave %s", got)
	}
	for _, stream := range []bool{false, true} {
		for asked, want := range map[string]string{"same": "same", "kept": "kept", "blend": "m-"} {
			_, got := r.post("/v1/chat/completions", strings.Replace(fmt.Sprintf(chatBody, stream, ""), `"sim"`, `"`+asked+`"`, 1))
			if n := strings.Count(got, `"model":`); n == 0 || n != strings.Count(got, `"model":"`+want) {
				t.Errorf("%s, stream %v: not every answer names %s: %s", asked, stream, want, got)
			}
		}
	}
	if got := ask("none", ""); !strings.Contains(got, `"code":"model_not_found"`) {
		t.Errorf("an unknown model gave %s", got)
	}
	resp, _ := r.client.Get(r.url + "/v1/models")
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	for _, name := range []string{"m-a", "m-b", "mix", "stick", "gone"} {
		if !bytes.Contains(body, []byte(`"id":"`+name+`"`)) {
			t.Errorf("/v1/models lacks %s: %s", name, body)
		}
	}
}

func TestMetricsAndPrivate(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 3}), sim.New(sim.Options{Words: 3})}, nil)
	for range 4 {
		r.post("/v1/chat/completions", okBody)
		r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
	}
	resp, id := r.post("/v1/chat/completions", okBody, "x-request-id", "my-id-1")
	if resp.Header.Get("x-request-id") != "my-id-1" {
		t.Errorf("the request id was not kept: %v %s", resp.Header, id)
	}
	text := r.metrics()
	for _, want := range []string{
		`roundhouse_requests_total{code="200",model="sim",outcome="ok",pool="p",route="other"} 9`,
		`roundhouse_request_duration_seconds_count{model="sim",pool="p",route="other"} 9`,
		`roundhouse_ttft_seconds_count{model="sim",pool="p",route="other"} 9`,
		`roundhouse_inter_token_seconds_count{model="sim",pool="p"} `, `roundhouse_overhead_seconds_count{pool="p"} 9`,
		`roundhouse_queue_seconds_count{pool="p",priority="normal"} 9`, `roundhouse_queue_requests{pool="p",priority="high"} 0`,
		`roundhouse_tokens_total{kind="generated",model="sim",pool="p",route="other"} 27`,
		`roundhouse_in_flight_requests{pool="p",worker="1"} 0`, `roundhouse_worker_state{pool="p",state="ready",worker="1"} 1`,
		`roundhouse_worker_kv_capacity_tokens{pool="p",worker="1"} 100000`, `roundhouse_worker_kv_tokens{pool="p",source="charged",worker="2"} 0`,
		`roundhouse_worker_report_age_seconds{pool="p",worker="2"} `, `roundhouse_decisions_total{policy="least_kv",pool="p",reason=`,
		`vllm:num_requests_running{worker="p/1",engine="0",model_name="sim"} 0`, `vllm:kv_cache_usage_perc{worker="p/2",`,
	} {
		// The last byte of a stream may be there before it is counted.
		r.until("/metrics has "+want, func() bool {
			if !strings.Contains(text, want) {
				text = r.metrics()
			}
			return strings.Contains(text, want)
		})
	}
	if n := strings.Count(text, "# TYPE vllm:num_requests_running "); n != 1 {
		t.Errorf("a family of two workers has %d TYPE lines", n)
	}
	p := httptest.NewServer(r.door.Private())
	defer p.Close()
	get := func(path string, v any) int {
		resp, err := http.Get(p.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if v != nil && resp.StatusCode == 200 {
			if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
				t.Fatal(err)
			}
		}
		return resp.StatusCode
	}
	var dec control.Decision
	if get("/decisions/my-id-1", &dec) != 200 || len(dec.Candidates) != 2 || dec.Policy != "least_kv" || dec.Chosen == "" || dec.RunnerUp == "" || dec.RunnerUp == dec.Chosen {
		t.Errorf("the decision: %+v", dec)
	}
	if get("/decisions/nobody", nil) != 404 {
		t.Error("an unknown request has a decision")
	}
	var state control.State
	if get("/state", &state); state.Door != "door-1" || len(state.Workers) != 2 || state.Workers[0].Served+state.Workers[1].Served != 9 {
		t.Errorf("the state: %+v", state)
	}
}

// TestSets puts worker sets in force over the private socket, and after a
// restart finds the last one again.
func TestSets(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	holder := "a"
	put := func(epoch, version uint64, name string) int {
		b, _ := json.Marshal(control.WorkerSet{Schema: 1, Holder: holder, Epoch: epoch, Version: version, Pools: []control.Pool{{Name: name, Models: []string{"sim"}, Workers: []control.Worker{{Name: "1", URL: w.URL, Kind: "roundhouse", State: "ready", Generation: 1}}}}})
		req, _ := http.NewRequest("PUT", "http://door/worker-set", bytes.NewReader(b))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	run := func(check func(d *balancer.Door)) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		d, err := balancer.New(balancer.Options{Listener: ln, Socket: socket, StateDir: dir, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx, context.Background()) }()
		(&rig{t: t}).until("the private socket is there", func() bool {
			c, err := net.Dial("unix", socket)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
		check(d)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	run(func(d *balancer.Door) {
		for _, c := range []struct {
			epoch, version uint64
			name           string
			want           int
		}{{2, 1, "p", 200}, {2, 2, "q", 200}, {2, 1, "p", 409}, {1, 9, "p", 409}, {3, 1, "", 422}, {3, 1, "r", 200}, {2, 9, "p", 409}} {
			if got := put(c.epoch, c.version, c.name); got != c.want {
				t.Errorf("epoch %d version %d: got %d; want %d", c.epoch, c.version, got, c.want)
			}
		}
		if s := d.State(); s.Epoch != 3 || s.Workers[0].ID != "r/1" {
			t.Errorf("in force is %+v", s)
		}
	})
	run(func(d *balancer.Door) {
		if s := d.State(); s.Epoch != 3 || len(s.Workers) != 1 || s.Workers[0].ID != "r/1" {
			t.Errorf("after a restart in force is %+v", s)
		}
		holder = "b"
		if got := put(9, 1, "q"); got != 409 {
			t.Errorf("a stranger within the lease, which a restart must not end: got %d; want 409", got)
		}
		holder = "a"
		if got := put(4, 1, "s"); got != 200 {
			t.Errorf("the holder started again: got %d; want 200", got)
		}
	})
}

// TestDrainDoor ends a door under a stream: it comes to its end first.
func TestDrainDoor(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 100, Pace: 5 * time.Millisecond})
	r := newRig(t, []*sim.Worker{w}, nil)
	answer := make(chan string, 1)
	go func() {
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
		answer <- got
	}()
	r.until("the stream runs", func() bool { return w.Served.Load() == 1 })
	p := httptest.NewServer(r.door.Private())
	resp, err := http.Post(p.URL+"/shutdown", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	p.Close()
	if s := hear(t, <-answer); s.text != words(0, 100) || !s.done {
		t.Errorf("got %+v", s)
	}
}

// TestHeldResponses sends what belongs to a stored response to its worker, and
// says so when that worker has turned.
func TestHeldResponses(t *testing.T) {
	bodies := make(chan string, 64)
	serve := func(name string) *httptest.Server {
		m := http.NewServeMux()
		m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"sim"}]}`) })
		m.HandleFunc("GET /metrics", func(http.ResponseWriter, *http.Request) {})
		m.HandleFunc("/v1/responses", func(w http.ResponseWriter, r *http.Request) {
			bodies <- name
			fmt.Fprintf(w, `{"id":"resp_%s1","object":"response","usage":{"input_tokens":1,"output_tokens":1}}`, name)
		})
		m.HandleFunc("/v1/responses/", func(_ http.ResponseWriter, _ *http.Request) { bodies <- name })
		return httptest.NewServer(m)
	}
	a, b := serve("a"), serve("b")
	defer a.Close()
	defer b.Close()
	r := newRig(t, nil, func(s *control.WorkerSet) {
		for i, srv := range []*httptest.Server{a, b} {
			s.Pools[0].Workers = append(s.Pools[0].Workers, control.Worker{Name: fmt.Sprint(i + 1), URL: srv.URL, Generation: 1, Kind: "vllm", State: "ready"})
		}
	})
	_, got := r.post("/v1/responses", `{"model":"sim","input":"x"}`)
	name := <-bodies
	if !strings.Contains(got, "resp_"+name) {
		t.Fatal(got)
	}
	for range 6 {
		if _, got := r.post("/v1/responses", `{"model":"sim","input":"x","previous_response_id":"resp_`+name+`1"}`); <-bodies != name {
			t.Fatalf("went astray: %s", got)
		}
		if resp, err := r.client.Get(r.url + "/v1/responses/resp_" + name + "1"); err != nil || resp.StatusCode != 200 || <-bodies != name {
			t.Fatal("a stored response was looked for elsewhere")
		} else {
			resp.Body.Close()
		}
	}
	r.reset(func(workers []control.Worker) {
		for i := range workers {
			workers[i].Generation = 2
		}
	})
	if resp, got := r.post("/v1/responses", `{"model":"sim","input":"x","previous_response_id":"resp_`+name+`1"}`); resp.StatusCode != 404 {
		t.Fatalf("after the turn: got %d %s", resp.StatusCode, got)
	}
}
