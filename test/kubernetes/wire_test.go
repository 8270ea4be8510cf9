//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/extproc"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// rig is a door with its workers, pickers and an Envoy.
type rig struct {
	*testing.T
	door    *balancer.Door
	workers []*sim.Worker
	at      map[string]string
	stops   map[string]func()
	set     control.WorkerSet
}

// newRig starts three workers of a pool and one of another, a door, its pickers, and an
// Envoy for each gateway.
func newRig(t *testing.T) *rig {
	r := &rig{T: t, stops: map[string]func(){}}
	set := control.WorkerSet{Schema: 1, Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Policy: "least_inflight"}, {Name: "q", Policy: "least_kv"}}}
	for i := range 4 {
		w := sim.New(sim.Options{Pace: time.Millisecond})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		r.workers = append(r.workers, w)
		p := &set.Pools[i/3]
		p.Workers = append(p.Workers, control.Worker{Name: fmt.Sprint(i + 1), URL: w.URL, Generation: 1, Kind: "vllm", State: "ready"})
	}
	set.Door = configs.DefaultDoor()
	set.Door.Objectives = []configs.Objective{{Name: "batch", Priority: -1}}
	set.Routes = []configs.Route{{Name: "alias", Sticky: "none", KeepName: true, Targets: []configs.Target{{Model: "sim", Weight: 1}}}}
	r.set = set
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.door, err = balancer.New(balancer.Options{Listener: ln, Set: &set, Log: slog.New(slog.DiscardHandler), DrainTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		r.door.Run(ctx, ctx)
		close(done)
	}()
	t.Cleanup(func() { end(); <-done })
	until(t, "the workers are reached", func() bool {
		for _, w := range r.door.State().Workers {
			if !w.Reached {
				return false
			}
		}
		return true
	})
	return r
}

// picker starts a picker, and returns where gateways ask it.
func (r *rig) picker(o balancer.PickerOptions, unwatched bool) string {
	s, err := extproc.New(extproc.Options{Host: r.door.Picker(o), Unwatched: unwatched, MostBody: 64 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	go s.Serve(l)
	s.Ready(true)
	r.Cleanup(s.Stop)
	r.stops[l.Addr().String()] = s.Stop
	return l.Addr().String()
}

func (r *rig) addresses() (all []string) {
	for _, w := range r.workers[:3] {
		all = append(all, strings.TrimPrefix(w.URL, "http://"))
	}
	return all
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// ask sends one request by a gateway.
func (r *rig) ask(gateway, path, body string, fields ...string) answer {
	r.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	req, err := http.NewRequestWithContext(r.Context(), method, r.at[gateway]+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text), err}
}

// chat is a request for an answer of that many words.
func chat(words int, stream bool, prompt string) string {
	b, _ := json.Marshal(map[string]any{"model": "sim", "stream": stream, "max_tokens": words, "messages": []any{map[string]string{"role": "user", "content": prompt}}})
	return string(b)
}

// settled waits until the ledger holds nothing any more.
func (r *rig) settled() {
	r.Helper()
	until(r.T, "nothing is charged any more", func() bool {
		for _, w := range r.door.State().Workers {
			if w.Requests.InFlight != 0 || w.KV.ChargedTokens != 0 {
				return false
			}
		}
		return len(r.door.Requests()) == 0
	})
}

func (r *rig) servedBy() (counts []int64) {
	for _, w := range r.workers {
		counts = append(counts, w.Served.Load())
	}
	return counts
}

// TestWire asks by every kind of gateway.
func TestWire(t *testing.T) {
	r := newRig(t)
	plain, list3 := r.picker(balancer.PickerOptions{Pool: "p"}, false), r.picker(balancer.PickerOptions{Pool: "p", Endpoints: 3}, false)
	quiet, other, mortal := r.picker(balancer.PickerOptions{Pool: "p"}, true), r.picker(balancer.PickerOptions{Pool: "q"}, false), r.picker(balancer.PickerOptions{Pool: "p"}, false)
	buffered := m{"request_header_mode": "SEND", "response_header_mode": "SEND", "request_body_mode": "BUFFERED", "response_body_mode": "BUFFERED"}
	streamed := m{"request_header_mode": "SEND", "response_header_mode": "SEND", "request_body_mode": "BUFFERED", "response_body_mode": "STREAMED"}
	unseen := m{"request_header_mode": "SEND", "response_header_mode": "SKIP", "request_body_mode": "FULL_DUPLEX_STREAMED", "request_trailer_mode": "SEND", "response_body_mode": "NONE"}
	headsOnly := m{"request_header_mode": "SEND", "response_header_mode": "SEND", "request_body_mode": "NONE", "response_body_mode": "NONE"}
	hint := func(of ...string) list {
		var all list
		for _, s := range of {
			all = append(all, s)
		}
		return list{m{"name": "set_metadata", "typed_config": typed("extensions.filters.http.set_metadata.v3.Config",
			m{"metadata": list{m{"metadata_namespace": "envoy.lb.subset_hint", "value": m{"x-gateway-destination-endpoint-subset": append(list{}, all...)}}}})}}
	}
	dead, _ := net.Listen("tcp", "127.0.0.1:0")
	dead.Close()
	all := r.addresses()
	r.at = start(t, map[string]*gateway{
		"istio":         {picker: plain, tls: true, choose: byMetadata, workers: all},
		"istio, list":   {picker: list3, choose: byMetadata, workers: all},
		"envoy gateway": {picker: plain, choose: byHeader, workers: all},
		"aigw":          {picker: plain, tls: true},
		"aigw buffered": {picker: plain, mode: buffered},
		"streamed":      {picker: plain, mode: streamed},
		"unseen":        {picker: plain, mode: unseen},
		"heads only":    {picker: plain, mode: headsOnly},
		"unwatched":     {picker: quiet},
		"mortal":        {picker: mortal},
		"two pools":     {picker: plain, byPath: map[string]string{"/other/": other}},
		"subset":        {picker: plain, before: hint(all[1])},
		"empty subset":  {picker: plain, before: hint()},
		"wrong subset":  {picker: plain, before: hint("192.0.2.1:80")},
		"unknown hosts": {picker: plain, choose: byMetadata, workers: all[2:]},
		"fail open":     {picker: "", open: true, choose: byHeader, workers: all},
		"fail closed":   {picker: dead.Addr().String()},
	})
	for name, f := range map[string]func(*rig){
		"every gateway": everyGateway, "large bodies": largeBodies, "two pools": twoPools, "subsets": subsets, "served elsewhere": servedElsewhere,
		"forged fields": forgedFields, "names": names, "refusals": refusals, "no body": noBody, "client leaves": clientLeaves,
		"without a picker": withoutPicker, "waiting": waiting, "eviction": eviction,
	} {
		t.Run(name, func(t *testing.T) {
			of := *r
			of.T = t
			f(&of)
			of.settled()
		})
	}
	t.Run("its end", func(t *testing.T) {
		of := *r
		of.T = t
		itsEnd(&of, mortal)
	})
}

// everyGateway sends plain and streamed requests by each, which spread.
func everyGateway(r *rig) {
	for _, g := range []string{"istio", "istio, list", "envoy gateway", "aigw", "aigw buffered", "streamed", "unseen", "heads only", "unwatched", "mortal"} {
		before := r.servedBy()
		var wg sync.WaitGroup
		for n := range 9 {
			wg.Go(func() {
				got := r.ask(g, "/v1/chat/completions", chat(20, n%2 == 0, "hello"))
				if got.status != 200 || got.err != nil || n%2 == 0 && !strings.Contains(got.body, "[DONE]") || n%2 == 1 && !strings.Contains(got.body, `"usage"`) {
					r.Errorf("%s: got %d %v %s", g, got.status, got.err, got.body)
				}
				if g != "unseen" && g != "unwatched" && got.header.Get("X-Roundhouse-Worker") == "" {
					r.Errorf("%s: the answer does not name its worker: %v", g, got.header)
				}
			})
		}
		wg.Wait()
		for i, n := range r.servedBy()[:3] {
			if n == before[i] {
				r.Errorf("%s: worker %d got nothing of 9 requests", g, i+1)
			}
		}
	}
}

// largeBodies sends prompts of many pieces, which come whole.
func largeBodies(r *rig) {
	long := strings.Repeat("word ", 260_000)
	for i, g := range []string{"istio", "aigw", "envoy gateway", "unwatched"} {
		body := chat(i+1, false, long)
		if got := r.ask(g, "/v1/chat/completions", body); got.status != 400 && got.status != 200 {
			r.Errorf("%s: got %d %s", g, got.status, got.body)
		}
		seen := false
		for _, w := range r.workers[:3] {
			for _, b := range w.Bodies() {
				seen = seen || len(b) == len(body) && b == body
			}
		}
		if !seen {
			r.Errorf("%s: no worker got the body as it was sent", g)
		}
	}
}

// twoPools has each pool's picker keep to its own workers.
func twoPools(r *rig) {
	before := r.servedBy()
	for range 5 {
		if got := r.ask("two pools", "/other/v1/chat/completions", chat(2, false, "x")); got.status != 200 || got.header.Get("X-Roundhouse-Worker") != "q/4" {
			r.Fatalf("got %d %v %s", got.status, got.header, got.body)
		}
	}
	after := r.servedBy()
	if after[3]-before[3] != 5 || after[0] != before[0] || after[1] != before[1] || after[2] != before[2] {
		r.Errorf("from %v to %v", before, after)
	}
}

// subsets narrows the choice.
func subsets(r *rig) {
	before := r.servedBy()
	for range 6 {
		if got := r.ask("subset", "/v1/chat/completions", chat(2, false, "x")); got.status != 200 {
			r.Fatalf("got %d %s", got.status, got.body)
		}
	}
	if after := r.servedBy(); after[1]-before[1] != 6 {
		r.Errorf("from %v to %v", before, after)
	}
	for _, g := range []string{"empty subset", "wrong subset"} {
		got := r.ask(g, "/v1/chat/completions", chat(2, false, "x"))
		if got.status != 503 || got.header.Get(extproc.Dropped) != extproc.NoEndpoints {
			r.Errorf("%s: got %d %v", g, got.status, got.header)
		}
	}
}

// servedElsewhere has a gateway that knows one worker alone: the charges move there.
func servedElsewhere(r *rig) {
	seen := make(chan answer)
	for range 6 {
		go func() { seen <- r.ask("unknown hosts", "/v1/chat/completions", chat(200, true, "x")) }()
	}
	until(r.T, "all charges are at the worker that serves them", func() bool {
		s := r.door.State().Workers
		return s[2].Requests.InFlight == 6 && s[0].Requests.InFlight == 0 && s[1].Requests.InFlight == 0
	})
	for range 6 {
		if got := <-seen; got.status != 200 || got.header.Get("X-Roundhouse-Worker") != "p/3" {
			r.Errorf("got %d %v", got.status, got.header)
		}
	}
}

// forgedFields has a client name an endpoint, and show what pickers and doors say.
func forgedFields(r *rig) {
	got := r.ask("aigw", "/v1/chat/completions", chat(2, false, "x"), "x-gateway-destination-endpoint", "192.0.2.1:80",
		"x-gateway-inference-fairness-id", "a", "x-roundhouse-door", "forged", "x-roundhouse-seq", "7")
	if got.status != 200 {
		r.Fatalf("got %d %s", got.status, got.body)
	}
	for _, w := range r.workers {
		for _, h := range w.Heads() {
			for _, name := range []string{"x-gateway-inference-fairness-id", "x-roundhouse-door", "x-roundhouse-seq"} {
				if v := h.Get(name); v != "" {
					r.Errorf("a worker got %s: %s", name, v)
				}
			}
		}
	}
}

// names has the model renamed, by a route and by the gateway, under both names of the
// field; the answer has the client's.
func names(r *rig) {
	for _, g := range []string{"istio", "aigw", "aigw buffered", "streamed"} {
		for _, stream := range []bool{false, true} {
			for _, field := range []string{"", "x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite"} {
				model, fields := "alias", []string(nil)
				if field != "" {
					model, fields = "its-own", []string{field, "sim"}
				}
				got := r.ask(g, "/v1/chat/completions", strings.Replace(chat(5, stream, "x"), `"sim"`, `"`+model+`"`, 1), fields...)
				if got.status != 200 || strings.Contains(got.body, `"model":"sim"`) || !strings.Contains(got.body, `"model":"`+model+`"`) {
					r.Errorf("%s, %v, %q: got %d %s", g, stream, field, got.status, got.body)
				}
			}
		}
	}
}

// refusals are answered in the door's words, with a reason.
func refusals(r *rig) {
	for body, want := range map[string]int{`{"model":`: 400, `{"model":7}`: 400} {
		got := r.ask("istio", "/v1/chat/completions", body)
		if got.status != want || !strings.Contains(got.body, `"error"`) || got.header.Get("Content-Type") != "application/json" {
			r.Errorf("%s: got %d %s %v", body, got.status, got.body, got.header)
		}
	}
	if got := r.ask("istio", "/v1/chat/completions", chat(2, false, strings.Repeat("x", 65<<20))); got.status != 413 {
		r.Errorf("a body that is too long: %d %.200s", got.status, got.body)
	}
}

// noBody asks by GET, and for a path that nobody knows.
func noBody(r *rig) {
	for _, g := range []string{"istio", "aigw", "aigw buffered", "unwatched"} {
		if got := r.ask(g, "/v1/models", ""); got.status != 200 || !strings.Contains(got.body, `"sim"`) {
			r.Errorf("%s: got %d %s", g, got.status, got.body)
		}
		if got := r.ask(g, "/v1/messages/something_new", `{"not":"known"}`); got.status != 200 {
			r.Errorf("%s: a path that only the engine knows: %d %s", g, got.status, got.body)
		}
	}
}

// clientLeaves has clients leave in mid-answer: nothing stays charged.
func clientLeaves(r *rig) {
	for range 10 {
		ctx, leave := context.WithCancel(r.Context())
		req, _ := http.NewRequestWithContext(ctx, "POST", r.at["istio"]+"/v1/chat/completions", strings.NewReader(chat(5000, true, "x")))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			r.Fatal(err)
		}
		resp.Body.Read(make([]byte, 10))
		leave()
		resp.Body.Close()
	}
}

// withoutPicker asks where no picker is.
func withoutPicker(r *rig) {
	if got := r.ask("fail open", "/v1/chat/completions", chat(2, false, "x")); got.status != 200 {
		r.Errorf("a gateway that goes on without a picker: %d %s", got.status, got.body)
	}
	if got := r.ask("fail closed", "/v1/chat/completions", chat(2, false, "x")); got.status != 500 {
		r.Errorf("a gateway that does not: %d %s", got.status, got.body)
	}
}

// waiting holds a request longer than a message may take: the queue does as at the door.
func waiting(r *rig) {
	drain := func(state phase.Phase) {
		r.set.Version++
		for i := range r.set.Pools[0].Workers {
			r.set.Pools[0].Workers[i].State = state
		}
		if _, err := r.door.Apply(r.set); err != nil {
			r.Fatal(err)
		}
	}
	drain("draining")
	got := make(chan answer)
	go func() { got <- r.ask("istio", "/v1/chat/completions", chat(2, false, "x")) }()
	until(r.T, "it waits", func() bool { return len(r.door.Queued()) == 1 })
	<-time.After(time.Second) // twice what a message may take
	if a := r.ask("istio", "/v1/chat/completions", chat(2, false, "x"), "x-llm-d-inference-objective", "batch"); a.status != 503 {
		r.Errorf("what does not wait: %d %v", a.status, a.header)
	}
	drain("ready")
	if a := <-got; a.status != 200 {
		r.Errorf("what waited: %d %s", a.status, a.body)
	}
}

// eviction ends a request in its stream and another before.
func eviction(r *rig) {
	got := make(chan answer)
	go func() { got <- r.ask("istio", "/v1/chat/completions", chat(5000, true, "x")) }()
	until(r.T, "it streams", func() bool {
		all := r.door.Requests()
		return len(all) == 1 && all[0].Output > 5
	})
	r.door.Cancel(r.door.Requests()[0].ID)
	if a := <-got; a.err == nil && strings.Contains(a.body, "[DONE]") {
		r.Error("it came to its end")
	}
}

// itsEnd ends the picker while answers are on their way: those that it watches go on
// unseen.
func itsEnd(r *rig, picker string) {
	got := make(chan answer)
	go func() { got <- r.ask("unwatched", "/v1/chat/completions", chat(1000, true, "x")) }()
	until(r.T, "it streams", func() bool { return r.workers[0].Live.Load()+r.workers[1].Live.Load()+r.workers[2].Live.Load() == 1 })
	r.stops[picker]()
	if a := <-got; a.err != nil || !strings.Contains(a.body, "[DONE]") {
		r.Errorf("an answer that was not watched: %v %.100s", a.err, a.body)
	}
}
