package ailing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/measure/diagnose"
	"roundhouse/test/leaks"
)

func TestMain(m *testing.M) {
	leaks.Main(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1")) // it lives as long as the process
}

// stand is a door before engines, with clients.
type stand struct {
	t       *testing.T
	door    string
	engines []string // their own addresses
	client  *http.Client
	ctx     context.Context
	clients sync.WaitGroup
	key     string
}

// newStand puts a door before engines that listen already and speak as vLLM does.
func newStand(t *testing.T, limit int, urls ...string) *stand {
	t.Helper()
	return newStandOf(t, "vllm", limit, urls...)
}

// newStandOf puts a door before engines of a kind.
func newStandOf(t *testing.T, kind string, limit int, urls ...string) *stand {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, door: "http://" + ln.Addr().String(), engines: urls, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	pool := control.Pool{Name: "p", Policy: "least_kv", Scrape: configs.Scrape{Interval: configs.Duration(100 * time.Millisecond)}}
	for i, u := range urls {
		pool.Workers = append(pool.Workers, control.Worker{Name: fmt.Sprint(i + 1), URL: u, Kind: kind, State: "ready"})
	}
	set := control.WorkerSet{Schema: 1, Pools: []control.Pool{pool}}
	if limit > 0 {
		s.key = "secret"
		sum := sha256.Sum256([]byte(s.key))
		set.Door.Keys = []configs.Key{{Name: "team", SHA256: []string{hex.EncodeToString(sum[:])}, Models: []string{"*"}, MaxConcurrent: limit, Priority: "normal", Weight: 1}}
	}
	d, err := balancer.New(balancer.Options{Listener: ln, Set: &set, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	run, drain := context.WithCancel(context.Background())
	var ask context.CancelFunc
	s.ctx, ask = context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(run, run) }()
	t.Cleanup(func() {
		ask()
		s.clients.Wait()
		drain()
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.client.CloseIdleConnections()
	})
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for ; ; <-look.C { // the engines are met, or the test's own time ends
		reached := 0
		for _, w := range d.State().Workers {
			if w.Reached {
				reached++
			}
		}
		if reached == len(urls) {
			return s
		}
	}
}

// engines are workers that compute as vLLM does.
func engines(t *testing.T, speeds ...sim.Speed) (urls []string, all []*sim.Worker) {
	t.Helper()
	for i := range speeds {
		w := sim.New(sim.Options{Speed: &speeds[i], Words: 4000, Context: 100_000})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		urls, all = append(urls, w.URL), append(all, w)
	}
	return urls, all
}

// usual is an engine that is fast enough for a test of a second or two.
var usual = sim.Speed{Base: 0.002, PerPrefill: 20e-6, PerDecode: 50e-6, Budget: 2048, Capacity: 32_768, Seats: 64}

// ask sends one request and reads its answer, for at most patience (0: to its end).
func (s *stand) ask(base string, prompt string, tokens int, patience time.Duration) {
	ctx := s.ctx
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	body := fmt.Sprintf(`{"model":%q,"prompt":%q,"max_tokens":%d,"ignore_eos":true,"stream":true}`, s.model(), prompt, tokens)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/completions", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return // the client has left, or the test ends
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // as above
}

func (s *stand) model() string {
	if strings.Contains(s.t.Name(), "Own") {
		return "roundhouse-demo"
	}
	return "sim"
}

// loop lets so many clients ask again and again, each a request of its own.
func (s *stand) loop(clients int, base string, make func(client, n int) (prompt string, tokens int), patience time.Duration) {
	for c := range clients {
		s.clients.Go(func() {
			for n := 0; s.ctx.Err() == nil; n++ {
				prompt, tokens := make(c, n)
				s.ask(base, prompt, tokens, patience)
			}
		})
	}
}

// every lets a request come each so often, whether or not those before have ended.
func (s *stand) every(gap time.Duration, base string, make func(n int) (prompt string, tokens int)) {
	s.clients.Go(func() {
		tick := time.NewTicker(gap)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-s.ctx.Done():
				return
			case <-tick.C:
				s.clients.Go(func() {
					prompt, tokens := make(n)
					s.ask(base, prompt, tokens, 0)
				})
			}
		}
	})
}

// words is a prompt of about so many tokens as a sim.Worker counts them.
func words(tokens int) string { return strings.Repeat("abc ", tokens) }

// same is a request that is always the same.
func same(prompt, tokens int) func(int, int) (string, int) {
	text := words(prompt)
	return func(int, int) (string, int) { return text, tokens }
}

// hasty are the thresholds for recordings of seconds: those of times and of rates are
// smaller, all others as they are.
func hasty() *diagnose.Thresholds {
	t := diagnose.Defaults
	t.IdleKV, t.QueueOver, t.HitsOver, t.Memory.Over, t.Idle.For = time.Second, time.Second, time.Second, 24*time.Hour, 24*time.Hour
	t.ReportAge, t.HitsRate = 2.5, 300 // an idle engine is asked once a second
	return &t
}

// record looks at the metrics of door and engines for a time, after clients have begun.
func (s *stand) record(length time.Duration) *diagnose.Recording {
	s.t.Helper()
	began := time.Now()
	return s.recordUntil(func(r *diagnose.Recording) bool { return time.Since(began) >= length && len(r.Times) >= 15 })
}

// recordUntil looks at the metrics of door and engines until it is enough. The engines
// are asked themselves: what the door relays of them is up to a second old, which is much
// of so short a look.
func (s *stand) recordUntil(enough func(*diagnose.Recording) bool) *diagnose.Recording {
	s.t.Helper()
	r := &diagnose.Recording{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; !enough(r); <-tick.C {
		var page strings.Builder
		for line := range strings.Lines(s.get(s.door)) {
			if !strings.HasPrefix(line, "vllm:") {
				page.WriteString(line)
			}
		}
		for i, e := range s.engines {
			for line := range strings.Lines(s.page(e)) {
				if strings.HasPrefix(line, "vllm:") {
					page.WriteString(strings.Replace(line, "{", fmt.Sprintf("{worker=\"p/%d\",", i+1), 1))
				}
			}
		}
		r.Add(time.Now(), page.String())
	}
	return r
}

// get is a page of metrics that must be had.
func (s *stand) get(base string) string {
	page := s.page(base)
	if page == "" {
		s.t.Fatalf("%s says nothing", base)
	}
	return page
}

// page is a page of metrics; a process that is gone says nothing.
func (s *stand) page(base string) string {
	res, err := s.client.Get(base + "/metrics")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	return read(res)
}

// told is a report as a failing test shows it.
func told(r *diagnose.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "\n%s %s: %s; %s; %+v; %s", f.Rule, f.Object, f.Says, f.Cause, f.Change, f.CausedBy)
	}
	return b.String()
}

func read(res *http.Response) string {
	text, err := io.ReadAll(res.Body)
	if err != nil {
		panic(err)
	}
	return string(text)
}
