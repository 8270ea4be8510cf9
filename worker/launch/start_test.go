package launch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"roundhouse/test/ports"
)

// connects is a log that tries the port with every line until it says ready.
type connects struct {
	bytes.Buffer
	port  int
	early []string
	ready chan struct{}
	open  bool
}

func (c *connects) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "msg=ready") {
		close(c.ready)
		c.open = true
	} else if c.open {
		return c.Buffer.Write(p)
	} else if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port)); err == nil {
		_ = conn.Close()
		c.early = append(c.early, string(p))
	}
	return c.Buffer.Write(p)
}

// TestStartLines holds what recipes and balancers rely on at a start: the
// lines of the cache, and that nobody can connect before the model can answer.
func TestStartLines(t *testing.T) {
	port := ports.Free(t)
	o, err := ParseServe([]string{"--host", "127.0.0.1", "--port", fmt.Sprint(port), "--block-size", "64", "--num-gpu-blocks-override", "1788", "--max-model-len", "8000"}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	log := &connects{port: port, ready: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, o, slog.New(slog.NewTextHandler(log, nil))) }()
	select {
	case <-log.ready:
	case err := <-done:
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(log.early) > 0 {
		t.Errorf("the port was open before the worker was ready: %q", log.early)
	}
	if want := "GPU KV cache size: 114,432 tokens, Maximum concurrency for 8,000 tokens per request: 14.30x"; !strings.Contains(log.String(), want) {
		t.Errorf("there is no line %q in\n%s", want, log)
	}
}

// TestMemoryAndThreads holds that weights and KV cache lie outside the Go
// heap, and that the process has a thread beside those of the kernels.
func TestMemoryAndThreads(t *testing.T) {
	o, err := ParseServe([]string{"--dtype", "float32", "--num-gpu-blocks-override", "1000", "--block-size", "32", "--cpus", "0"}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	held, ok := w.memory.backend.(interface{ Bytes() int64 })
	if !ok || held.Bytes() < 100<<20 {
		t.Fatalf("a backend that does not hold what the test needs: %v", ok)
	}
	if m.HeapAlloc > 32<<20 {
		t.Errorf("the heap has %d MiB, the backend %d MiB", m.HeapAlloc>>20, held.Bytes()>>20)
	}
	threads := regexp.MustCompile(`(\d+) thread`).FindStringSubmatch(w.memory.backend.Name())
	if n := 0; threads != nil {
		if _, err := fmt.Sscan(threads[1], &n); err != nil || runtime.GOMAXPROCS(0) < n+1 {
			t.Errorf("%d threads compute and GOMAXPROCS is %d", n, runtime.GOMAXPROCS(0))
		}
	}
}
