package balancer_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

func TestMain(m *testing.M) {
	if id := os.Getenv(doorProcess); id != "" {
		if err := runDoor(id); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// rig is a door in front of simulated workers.
type rig struct {
	t       *testing.T
	door    *balancer.Door
	url     string
	addr    string
	set     control.WorkerSet
	workers []*sim.Worker
	client  *http.Client
	log     *bytes.Buffer
}

// newRig starts a door and its workers; change may alter the worker set first.
func newRig(t *testing.T, workers []*sim.Worker, change func(*control.WorkerSet)) *rig {
	t.Helper()
	r := &rig{t: t, workers: workers, log: &bytes.Buffer{}}
	pool := control.Pool{Name: "p", Policy: "least_kv", ReasoningEnd: "</think>"}
	for i, w := range workers {
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		kind := "vllm"
		if w.Own {
			kind = "roundhouse"
		}
		pool.Workers = append(pool.Workers, control.Worker{Name: fmt.Sprint(i + 1), URL: w.URL, Generation: 1, Kind: kind, State: "ready"})
	}
	r.set = control.WorkerSet{Schema: 1, Epoch: 1, Version: 1, Pools: []control.Pool{pool}}
	r.set.Door.Resume.Enabled = true
	r.set.Door.Retry = configs.Retry{Attempts: 2, Budget: 0.2}
	r.set.Door.Queue.MaxWait = configs.Duration(time.Minute)
	if change != nil {
		change(&r.set)
	}
	r.serve(func() {
		for _, w := range workers {
			w.Stop()
		}
	})
	r.until("all workers are reached", func() bool {
		for _, w := range r.door.State().Workers {
			if !w.Reached {
				return false
			}
		}
		return true
	})
	return r
}

// serve starts the door for the rig's set; when the test ends, and the door has
// been told to end, stop ends its workers.
func (r *rig) serve(stop func()) {
	t := r.t
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door, err := balancer.New(balancer.Options{ID: doorID, Listener: ln, Set: &r.set, Log: logTo(), Access: doorAccess, Batches: doorBatches, DrainTimeout: time.Minute, PluginDeadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	door.ThroughFasthttp(viaFasthttp)
	if hastened > 0 {
		door.Hasten(hastened, hungAfter)
	}
	if writeWithin > 0 {
		door.WriteWithin(writeWithin)
	}
	r.door, r.addr, r.url = door, ln.Addr().String(), "http://"+ln.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- door.Run(ctx, context.Background()) }()
	r.client = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		cancel()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// foreignRig starts a door in front of engines that the test runs, and does not
// wait for them.
func foreignRig(t *testing.T, urls map[string]string) *rig {
	t.Helper()
	pool := control.Pool{Name: "p", Policy: "least_kv"}
	for name, url := range urls {
		pool.Workers = append(pool.Workers, control.Worker{Name: name, URL: url, Generation: 1, Kind: "vllm", State: "ready"})
	}
	r := &rig{t: t, set: control.WorkerSet{Schema: 1, Epoch: 1, Version: 1, Pools: []control.Pool{pool}}}
	r.serve(func() {})
	return r
}

// hastened is how often the doors of newRig look around, 0: as always, and
// hungAfter how long a worker may make no progress then.
var hastened, hungAfter time.Duration

// writeWithin is how long the doors of newRig wait for a client to read; 0: as
// always.
var writeWithin time.Duration

// doorID is the name of the doors of newRig.
var doorID = "door-1"

// doorLog is where the doors of newRig log; nil: nowhere.
var doorLog *slog.Logger

// doorBatches is where the doors of a test keep files and batches.
var doorBatches string

// doorAccess is where the doors of a test write a line a request.
var doorAccess io.Writer

func logTo() *slog.Logger {
	if doorLog != nil {
		return doorLog
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// reset has the door take its set anew, with its workers changed.
func (r *rig) reset(change func(workers []control.Worker)) {
	r.t.Helper()
	set := r.set
	set.Version = 2
	set.Pools = []control.Pool{set.Pools[0]}
	set.Pools[0].Workers = append([]control.Worker(nil), set.Pools[0].Workers...)
	change(set.Pools[0].Workers)
	if _, err := r.door.Apply(set); err != nil {
		r.t.Fatal(err)
	}
}

// until waits for something that must come true, however slow the machine is.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	began := time.Now()
	for n := 0; n < 2000 || time.Since(began) < time.Minute; n++ { // a process that is held up looks seldom
		if ok() {
			return
		}
		<-look.C
	}
	r.t.Fatalf("it never came true that %s", what)
}

// metrics reads what the door says in /metrics.
func (r *rig) metrics() string {
	r.t.Helper()
	resp, err := r.client.Get(r.url + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// post sends a request and returns the answer with its body read.
func (r *rig) post(path, body string, header ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequest("POST", r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		b = append(b, "\nREAD: "+err.Error()...)
	}
	return resp, string(b)
}

const chatBody = `{"model":"sim","stream":%v,"messages":[{"role":"user","content":"count"}]%s}`

// said is what a client made of a stream.
type said struct {
	text, reasoning string
	ids             map[string]bool
	raw             string
	done, failed    bool
	usage           string
}

// hear reads a stream as a strict client does.
func hear(t *testing.T, raw string) said {
	t.Helper()
	s := said{ids: map[string]bool{}, raw: raw}
	sc := bufio.NewScanner(strings.NewReader(raw))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			s.done = true
			continue
		}
		var e struct {
			ID      string `json:"id"`
			Choices []struct {
				Text  string `json:"text"`
				Delta struct {
					Content   string `json:"content"`
					Reasoning string `json:"reasoning_content"`
				} `json:"delta"`
			} `json:"choices"`
			Usage json.RawMessage `json:"usage"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("an event is not JSON: %v\n%s", err, data)
		}
		if e.Error != nil {
			s.failed = true
			continue
		}
		s.ids[e.ID] = true
		for _, c := range e.Choices {
			s.text += c.Delta.Content + c.Text
			s.reasoning += c.Delta.Reasoning
		}
		if e.Usage != nil {
			s.usage = string(e.Usage)
		}
	}
	return s
}

// words is the text of a whole answer.
func words(from, until int) string {
	var b strings.Builder
	for i := from; i < until; i++ {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.String()
}

func TestAnswers(t *testing.T) {
	f := func(name string, own, chat, stream bool) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: own}), sim.New(sim.Options{Own: own})}, nil)
			path, body := "/v1/chat/completions", fmt.Sprintf(chatBody, stream, "")
			if !chat {
				path, body = "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"count","max_tokens":20,"stream":%v}`, stream)
			}
			resp, got := r.post(path, body)
			if resp.StatusCode != 200 || resp.Header.Get("x-request-id") == "" || !strings.HasPrefix(resp.Header.Get("x-roundhouse-worker"), "p/") || resp.Header.Get("x-roundhouse-queue-ms") != "0" {
				t.Fatalf("status %d, headers %v, body %s", resp.StatusCode, resp.Header, got)
			}
			if strings.Contains(got, "token_ids") || stream && strings.Contains(got, "usage") {
				t.Fatalf("the client sees what it did not ask for:\n%s", got)
			}
			if !stream {
				if !strings.Contains(got, words(0, 20)) {
					t.Fatalf("got %s", got)
				}
				return
			}
			if s := hear(t, got); s.text != words(0, 20) || !s.done || s.failed || len(s.ids) != 1 {
				t.Fatalf("got %+v", s)
			}
		})
	}
	f("our worker, chat", true, true, false)
	f("our worker, chat stream", true, true, true)
	f("our worker, completion stream", true, false, true)
	f("vLLM, chat", false, true, false)
	f("vLLM, chat stream", false, true, true)
	f("vLLM, completion", false, false, false)
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 2*time.Minute)
}
