package fleet

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/ledger"
)

// asked notes when which workers were asked for their metrics.
type asked struct {
	mu    sync.Mutex
	times map[time.Time]int
}

// RoundTrip implements http.RoundTripper.
func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	text, status := "", http.StatusOK
	switch r.URL.Path {
	case "/metrics":
		text = "vllm:kv_cache_usage_perc 0\nvllm:num_requests_running 0\n"
		a.mu.Lock()
		a.times[time.Now()]++
		a.mu.Unlock()
	case "/v1/models":
		text = `{"data":[{"id":"m"}]}`
	default:
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// TestScrapedTogether: workers without requests are asked once a second, whenever they came: few
// of them at one instant, and many at eight.
func TestScrapedTogether(t *testing.T) {
	for _, c := range []struct{ workers, instants int }{{2, 1}, {8, 1}, {100, 8}} {
		synctest.Test(t, func(t *testing.T) {
			var f Fleet
			a := &asked{times: map[time.Time]int{}}
			f.Start(t.Context(), "own", slog.New(slog.DiscardHandler), time.Now(), ledger.New())
			f.errands.Transport, f.Remap = a, func() {}
			var p *Pool
			cfg := control.Pool{Name: "p"}
			for i := range c.workers {
				cfg.Workers = append(cfg.Workers, control.Worker{Name: fmt.Sprint("w", i), URL: "http://127.0.0.1:1", Generation: 1, Kind: "vllm", State: phase.Ready})
				p = f.ApplyPool(p, &cfg, 1, map[*Worker]bool{})
				time.Sleep(17 * time.Millisecond) // each comes at a time of its own
			}
			time.Sleep(3 * time.Second)
			a.mu.Lock()
			clear(a.times)
			a.mu.Unlock()
			const seconds = 20
			time.Sleep(seconds * time.Second)
			synctest.Wait()
			sum := 0
			for _, n := range a.times {
				sum += n
			}
			if off := sum - seconds*c.workers; len(a.times) > (seconds+1)*c.instants || off < -c.workers || off > c.workers {
				t.Errorf("in %d seconds %d workers were asked %d times, at %d instants", seconds, c.workers, sum, len(a.times))
			}
			f.End(*p.Workers.Load())
		})
	}
}
