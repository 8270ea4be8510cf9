package soak

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"roundhouse/worker/launch"
	"roundhouse/worker/workertest"
)

var (
	duration = flag.Duration("for", time.Minute, "how long the soak runs")
	trace    = flag.String("trace", "", "a recorded trace with ContextTokens and GeneratedTokens, instead of drawn lengths")
	seed     = flag.Uint64("seed", 1, "of the traffic")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watcher takes the address out of the worker's log.
type watcher struct{ ready chan string }

var address = regexp.MustCompile(`msg=ready address=(\S+)`)

func (w *watcher) Write(p []byte) (int, error) {
	if m := address.FindSubmatch(p); m != nil {
		w.ready <- "http://" + string(m[1])
	}
	return len(p), nil
}

// serve starts a worker on the demonstration model and returns its URL.
func serve(t *testing.T) string {
	t.Helper()
	args := []string{"--host", "127.0.0.1", "--port", "0", "--cpus", "0", "--max-model-len", "1536", "--block-size", "128",
		"--num-gpu-blocks-override", fmt.Sprint(cacheTokens / 128), "--max-num-seqs", "16", "--max-num-batched-tokens", "512"}
	o, err := launch.ParseServe(args, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w, done := &watcher{make(chan string, 1)}, make(chan error, 1)
	go func() { done <- launch.Serve(ctx, o, slog.New(slog.NewTextHandler(w, nil))) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case url := <-w.ready:
		return url
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return ""
	}
}

// usage is what the process holds when nothing is under way.
type usage struct{ heap, rss, goroutines float64 }

// measure waits until the worker is idle and its connections are gone, and
// looks at what is left.
func measure(t *testing.T, url string, client *http.Client) usage {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	before := 0
	for still := 0; still < 5; {
		n := runtime.NumGoroutine() // those of the look before have had a tick to end
		busy := held(t, url, client)
		client.CloseIdleConnections()
		if n == before && busy == "" {
			still++
		} else {
			before, still = n, 0
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("two minutes after the last request: %s; %d goroutines", busy, before)
		}
	}
	runtime.GC() // pools give up what they hold at the second collection
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{heap: float64(m.HeapAlloc), rss: resident(t), goroutines: float64(before)}
}

// held is what the worker says that it still holds: requests or blocks.
func held(t *testing.T, url string, client *http.Client) string {
	t.Helper()
	resp, err := client.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		for _, name := range []string{"vllm:num_requests_running{", "vllm:num_requests_waiting{", "vllm:kv_cache_usage_perc{"} {
			if strings.HasPrefix(line, name) && !strings.HasSuffix(line, " 0.0") {
				return line
			}
		}
	}
	return ""
}

// resident is the memory of the process that is its own: without the pages of
// files, which the kernel drops and reads again as it likes.
func resident(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatal("/proc/self/status has no RssAnon")
	}
	kb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return float64(kb) * 1024
}

// TestSoak holds that the last tenth of the time finds the process as the
// second found it.
func TestSoak(t *testing.T) {
	l := &load{seed: *seed, vocab: 1000, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	if *trace != "" {
		var err error
		if l.trace, err = workertest.ReadLengths(*trace); err != nil {
			t.Fatal(err)
		}
	}
	l.url = serve(t)
	defer l.client.CloseIdleConnections()
	if err := l.warm(); err != nil {
		t.Fatal(err)
	}
	const pauses = 3 // a tenth
	tenths := make([]usage, 10)
	for i := range tenths {
		var all []usage
		for range pauses {
			if err := l.run(*duration / time.Duration(len(tenths)*pauses)); err != nil {
				t.Fatal(err)
			}
			all = append(all, measure(t, l.url, l.client))
		}
		tenths[i] = median(all)
		t.Logf("tenth %2d: heap %.2f MiB, resident %.2f MiB, %.0f goroutines; %d requests, %d left, %d tokens",
			i+1, tenths[i].heap/(1<<20), tenths[i].rss/(1<<20), tenths[i].goroutines, l.ended.Load(), l.aborted.Load(), l.tokens.Load())
	}
	second, last := tenths[1], tenths[9]
	for name, of := range map[string]func(usage) float64{
		"live heap":       func(u usage) float64 { return u.heap },
		"resident memory": func(u usage) float64 { return u.rss },
		"goroutines":      func(u usage) float64 { return u.goroutines },
	} {
		if a, b := of(second), of(last); b > a*1.02 {
			t.Errorf("%s: %.0f in the second tenth, %.0f in the last: %.1f %% more", name, a, b, 100*(b/a-1))
		}
	}
	if l.aborted.Load() == 0 || l.ended.Load() == 0 {
		t.Errorf("%d requests ended and %d were left", l.ended.Load(), l.aborted.Load())
	}
	if code, body := post(t, l.url+"/v1/completions", `{"prompt":[1,2,3],"max_tokens":4,"ignore_eos":true}`); code != http.StatusOK {
		t.Errorf("after all: %d %s", code, body)
	}
}

// median is the middle of each number by itself.
func median(all []usage) usage {
	middle := func(of func(usage) float64) float64 {
		var x []float64
		for _, u := range all {
			x = append(x, of(u))
		}
		slices.Sort(x)
		return x[len(x)/2]
	}
	return usage{
		middle(func(u usage) float64 { return u.heap }), middle(func(u usage) float64 { return u.rss }),
		middle(func(u usage) float64 { return u.goroutines }),
	}
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close(); http.DefaultClient.CloseIdleConnections() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, fmt.Sprint(string(text), err)
}
