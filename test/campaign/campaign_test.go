package campaign

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/test/program"
	"roundhouse/test/system"
)

var (
	goOn = flag.Duration("for", 10*time.Second, "how long each part goes on")
	seed = flag.Uint64("seed", 0, "the first seed; 0: of the clock")
)

var built program.Set

func TestMain(m *testing.M) {
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	if err := flag.Set("test.parallel", "16"); err != nil { // systems wait more than they compute
		panic("BUG: " + err.Error())
	}
	code := m.Run()
	results.print(os.Stdout)
	built.Remove()
	jumping.Remove()
	os.Exit(code)
}

const twoWorkers = `
log {
  access = false
}

pool "chat" {
  driver  = "process"
  devices = "cpu"
  workers = 2
  engine {
    served_model_name = ["roundhouse-demo"]
  }
  rotation {
    drain_timeout = "5s"
    stop_grace    = "10s"
  }
}
`

// start runs two workers behind a door that is quickly done with slow clients.
func start(t *testing.T, binary string) *system.System {
	t.Helper()
	t.Logf("seed %d", *seed)
	return system.Start(t, binary, "  limits {\n    header_read = \"5s\"\n    body_idle   = \"5s\"\n  }", twoWorkers)
}

// patient are the limits of a door whose clients are the tests' own: one that gets no
// time of the machine for a while is not to be let go.
const patient = "  limits {\n    header_read = \"10m\"\n    body_idle   = \"10m\"\n  }\n"

// TestBodies asks for what the grammar draws, of the door and of a worker itself.
// None ends a worker, none is answered with a failure of ours, and the answers that
// are checked meanwhile are all whole.
func TestBodies(t *testing.T) {
	s := start(t, built.Path(t, "roundhouse"))
	before := s.Workers()
	var c checked
	c.keep(t, s, 2)
	var direct struct{ Workers []struct{ URL string } }
	s.Get("/api/workers", &direct)
	b := bodies{to: []string{s.Door, s.Door, direct.Workers[0].URL}}
	ctx, cancel := context.WithTimeout(t.Context(), *goOn)
	defer cancel()
	grown := watchMemory(ctx, func() []process { return processes(s) })
	var all sync.WaitGroup
	for client := range 6 {
		all.Go(func() {
			for i := uint64(client); ctx.Err() == nil; i += 6 {
				b.ask(*seed, i)
			}
		})
	}
	all.Wait()
	c.stop(t)
	t.Logf("%d bodies: %v; %s", b.sent.Load(), b.counts(), c.String())
	for _, why := range b.failed {
		t.Error(why)
	}
	report(t, s, before, <-grown, tally{part: "bodies", requests: b.sent.Load(), c: &c})
}

// bodies asks what the grammar draws.
type bodies struct {
	to   []string
	sent atomic.Int64

	mu     sync.Mutex
	status [6]int // by hundreds; 0: no answer
	failed []string
}

var client = http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 20}}

// ask sends the i-th body. Whoever computes for longer than a few seconds is left.
func (b *bodies) ask(seed, i uint64) {
	r := rand.New(rand.NewPCG(seed, i))
	path, body := Body(r)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.to[int(i)%len(b.to)]+path, strings.NewReader(string(body)))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	req.Header.Set("Content-Type", "application/json")
	b.sent.Add(1)
	res, err := client.Do(req)
	if ctx.Err() != nil {
		if err == nil {
			res.Body.Close()
		}
		return
	}
	if err != nil {
		b.note(0, fmt.Sprintf("body %d of seed %d, %s %.400s: %v", i, seed, path, body, err))
		return
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		b.note(0, fmt.Sprintf("body %d of seed %d, %s %.400s: %v after %.200q", i, seed, path, body, err, text))
	case res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented && res.StatusCode != http.StatusServiceUnavailable:
		b.note(res.StatusCode/100, fmt.Sprintf("body %d of seed %d, %s %.400s: status %d: %.300s", i, seed, path, body, res.StatusCode, text))
	default:
		b.note(res.StatusCode/100, "")
	}
}

func (b *bodies) note(hundreds int, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status[min(hundreds, 5)]++
	if why != "" && len(b.failed) < 20 {
		b.failed = append(b.failed, why)
	}
}

func (b *bodies) counts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%d answered, %d refused as wrong, %d not served (501, 503) or failed, %d without an answer", b.status[2], b.status[4], b.status[5], b.status[0])
}

// report fails the test if a worker is not the process that it was, or if a process has
// grown, and notes what a part came to.
func report(t *testing.T, s *system.System, before []system.Worker, memory growth, row tally) {
	t.Helper()
	ended := 0
	for i, w := range s.Workers() {
		if w.Place.PID != before[i].Place.PID || w.Restarts != before[i].Restarts {
			ended++
			t.Errorf("a request ended a worker: %+v became %+v", before[i], w)
		}
	}
	if memory.failed != "" {
		t.Error(memory.failed)
	}
	row.requests += row.c.whole.Load() + int64(row.c.bad())
	row.ended, row.grown = fmt.Sprint(ended), memory.String()
	results.add(row)
}

// TestClients lets clients that are slow or broken come by the hundred at a time.
func TestClients(t *testing.T) {
	s := start(t, built.Path(t, "roundhouse"))
	before := s.Workers()
	var c checked
	c.keep(t, s, 4)
	ctx, cancel := context.WithTimeout(t.Context(), *goOn)
	defer cancel()
	grown := watchMemory(ctx, func() []process { return processes(s) })
	var mu sync.Mutex
	came := map[string]int{}
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(*seed, uint64(i)))
			for ctx.Err() == nil {
				did := Broken(r, strings.TrimPrefix(s.Door, "http://"), 3*time.Second)
				mu.Lock()
				came[did]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	c.stop(t)
	n := 0
	for _, times := range came {
		n += times
	}
	t.Logf("%d broken clients: %v; %s", n, came, c.String())
	if n < 300 {
		t.Errorf("only %d clients came", n)
	}
	report(t, s, before, <-grown, tally{part: "clients", requests: int64(n), c: &c})
}
