//go:build browser && cost

package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"roundhouse/balancer/sim"
	"roundhouse/test/ports"
)

// measured is for how long each number of tabs is measured.
var measured = flag.Duration("for", 20*time.Second, "for how long the supervisor is measured with and without tabs, twice each")

// What is measured: workers, streams, tabs beside none.
const (
	manyWorkers = 100
	manyStreams = 500
	manyTabs    = 8
	mostPaint   = 300.0   // milliseconds
	mostCPU     = 0.05    // cores a tab
	mostBytes   = 3 << 20 // of the binary
)

// TestCost prints what the console costs, and holds it to its bounds: of the supervisor's
// CPU the difference that tabs make, in turns, so that load of others falls on both.
func TestCost(t *testing.T) {
	h := manyHouse(t)
	h.stream(manyStreams)
	h.await(manyStreams)
	var idle, busy float64
	for range 2 {
		idle += h.cpu(*measured) / 2
		leave := h.tabs(manyTabs)
		busy += h.cpu(*measured) / 2
		leave()
	}
	tab := (busy - idle) / manyTabs
	t.Logf("supervisor: %.3f of a core with no tab, %.3f with %d: %.4f a tab", idle, busy, manyTabs, tab)
	if tab > mostCPU {
		t.Errorf("a tab costs %.4f of a core; at most %.2f", tab, mostCPU)
	}
	paints := h.paints(9)
	t.Logf("first paint of Now, nothing cached: median %.0f ms of %.0f", paints[len(paints)/2], paints)
	if paints[len(paints)/2] > mostPaint {
		t.Errorf("the first paint takes %.0f ms; at most %.0f", paints[len(paints)/2], mostPaint)
	}
	size := consoleBytes(t)
	t.Logf("packages web, live and top, with the files of the console: %.2f MiB of the binary", float64(size)/(1<<20))
	if size > mostBytes {
		t.Errorf("the console takes %d bytes of the binary; at most %d", size, mostBytes)
	}
}

// manyHouse is a supervisor, a process of its own, before simulated workers.
func manyHouse(t *testing.T) *house {
	dir := t.TempDir()
	door, admin := ports.Address(t), ports.Address(t)
	var text strings.Builder
	fmt.Fprintf(&text, "state_dir = %q\ndoor {\n listen = %q\n}\nadmin {\n listen = %q\n}\npool \"chat\" {\n driver = \"static\"\n", filepath.Join(dir, "state"), door, admin)
	for i := range manyWorkers {
		w := sim.New(sim.Options{Own: true, Words: 1 << 20, Pace: 200 * time.Millisecond, Capacity: 10 << 20, Context: 4 << 20})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		fmt.Fprintf(&text, " worker \"w%d\" {\n  url = %q\n }\n", i+1, w.URL)
	}
	h := &house{t: t, config: filepath.Join(dir, "roundhouse.hcl"), door: "http://" + door, admin: "http://" + admin}
	if err := os.WriteFile(h.config, []byte(text.String()+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		if t.Failed() {
			t.Logf("the program printed:\n%.4000s", h.out.String())
		}
	})
	h.look(1280, 720, false)
	return h
}

// stream keeps so many streams going until the test ends.
func (h *house) stream(n int) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	h.t.Cleanup(func() { cancel(); all.Wait() })
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				body := `{"model":"sim","stream":true,"max_tokens":100000,"messages":[{"role":"user","content":"count"}]}`
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.door+"/v1/chat/completions", bytes.NewReader([]byte(body)))
				if err != nil {
					h.t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
}

// await waits until the door holds so many streams.
func (h *house) await(n int) {
	h.t.Helper()
	late := time.After(3 * time.Minute)
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		var pools struct{ Door struct{ Streams int } }
		if resp, err := http.Get(h.admin + "/api/pools"); err == nil {
			err = json.NewDecoder(resp.Body).Decode(&pools)
			resp.Body.Close()
			if err == nil && pools.Door.Streams >= n {
				return
			}
		}
		select {
		case <-tick.C:
		case <-late:
			h.t.Fatalf("the door has %d streams; want %d", pools.Door.Streams, n)
		}
	}
}

// tabs opens tabs on pages that change, requests in flight among them.
func (h *house) tabs(n int) (leave func()) {
	var open []context.CancelFunc
	for i := range n {
		ctx, cancel := context.WithCancel(context.Background())
		open = append(open, cancel)
		query := []string{"", "?requests=all"}[i%2]
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.admin+"/api/stream"+query, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			h.t.Fatal(err)
		}
		go func() {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}()
	}
	return func() {
		for _, cancel := range open {
			cancel()
		}
	}
}

// cpu is what the supervisor computes for a while, in cores.
func (h *house) cpu(over time.Duration) float64 {
	h.t.Helper()
	ticks := func() float64 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid))
		if err != nil {
			h.t.Fatal(err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		return user + system
	}
	before, began := ticks(), time.Now()
	<-time.After(over)
	return (ticks() - before) / 100 / time.Since(began).Seconds() // Linux counts hundredths
}

// paints are the first paints of so many tabs that have nothing cached, the least first.
func (h *house) paints(n int) (list []float64) {
	for range n {
		p := open(h.t, 1280, 720, false)
		call(p, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
		run(p, chromedp.Navigate(h.admin+"/ui/#/now"))
		p.until(`performance.getEntriesByName('first-contentful-paint').length > 0`)
		list = append(list, is[float64](p, `performance.getEntriesByName('first-contentful-paint')[0].startTime`))
		run(p, chromedp.Navigate("about:blank")) // its stream is one of the browser's six connections
	}
	slices.Sort(list)
	return list
}

// consoleBytes is what the console's packages have of the program, by its symbols, and
// its files, which the linker lays among the data without a name.
func consoleBytes(t *testing.T) (size int64) {
	t.Helper()
	symbols, err := exec.Command("go", "tool", "nm", "-size", built.Path(t, "roundhouse")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(symbols)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[3], "roundhouse/web.") && !strings.HasPrefix(f[3], "roundhouse/live") && !strings.HasPrefix(f[3], "roundhouse/top.") {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err == nil && f[2] != "B" && f[2] != "b" { // what begins as zeros is not in the file
			size += n
		}
	}
	err = filepath.WalkDir("ui", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
