package balancer_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// hasten has the doors of one test look around often.
func hasten(t *testing.T, step, hung time.Duration) {
	hastened, hungAfter = step, hung
	t.Cleanup(func() { hastened = 0 })
}

// stubRig is a door in front of scraped workers whose answers a test writes.
func stubRig(t *testing.T, change func(*control.WorkerSet), answers ...http.HandlerFunc) *rig {
	t.Helper()
	return newRig(t, nil, func(s *control.WorkerSet) {
		for i, answer := range answers {
			m := http.NewServeMux()
			m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"sim"}]}`) })
			m.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"62500\"} 1\n")
			})
			m.HandleFunc("POST /", answer)
			m.HandleFunc("GET /v1/responses/", answer)
			srv := httptest.NewServer(m)
			t.Cleanup(srv.CloseClientConnections)
			t.Cleanup(srv.Close)
			s.Pools[0].Workers = append(s.Pools[0].Workers, control.Worker{Name: fmt.Sprint(i + 1), URL: srv.URL, Generation: 1, Kind: "vllm", State: "ready"})
		}
		if change != nil {
			change(s)
		}
	})
}

// flushed writes a part of an answer and sends it off.
func flushed(w http.ResponseWriter, part string) {
	io.WriteString(w, part)
	w.(http.Flusher).Flush()
}

const oneEvent = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"sim","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}` + "\n\n"
const endEvents = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"sim","choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

// TestHeartbeats keeps a silent stream alive with comments: none before the
// worker has answered at all, and none inside an event.
func TestHeartbeats(t *testing.T) {
	hasten(t, 20*time.Millisecond, time.Hour)
	var answered atomic.Bool
	beat, split := make(chan struct{}), make(chan struct{})
	r := stubRig(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(10 * hastened)
		w.Header().Set("Content-Type", "text/event-stream")
		answered.Store(true)
		flushed(w, "")
		<-beat
		flushed(w, oneEvent[:40])
		<-time.After(10 * hastened)
		close(split)
		flushed(w, oneEvent[40:]+endEvents)
	})
	resp, err := r.client.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if !answered.Load() {
		t.Error("the client got a head before the worker had answered")
	}
	lines := bufio.NewReader(resp.Body)
	for range 3 {
		if line, err := lines.ReadString('\n'); err != nil || line != ": heartbeat\n" {
			t.Fatalf("a silent stream got %q, %v", line, err)
		}
	}
	close(beat)
	<-split
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimLeft(strings.ReplaceAll("\n"+string(rest), "\n: heartbeat", ""), "\n"); got != oneEvent+endEvents {
		t.Errorf("the events came as\n%s\nwant\n%s", got, oneEvent+endEvents)
	}
	if at := strings.Index(string(rest), "data: "); strings.Contains(string(rest)[at:], ": heartbeat") {
		t.Errorf("a heartbeat stands inside an event:\n%s", rest)
	}
}

// TestLongAnswers waits for answers that do not stream as long as the worker
// computes, and no longer.
func TestLongAnswers(t *testing.T) {
	hasten(t, 20*time.Millisecond, time.Hour)
	const firstByte = 700 * time.Millisecond
	w := sim.New(sim.Options{Own: true, Words: 30, Pace: 60 * time.Millisecond})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) { s.Door.Limits.FirstByte = configs.Duration(firstByte) })
	unstalled(t, firstByte/2, func() error {
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 || !strings.Contains(got, words(0, 30)) {
			return fmt.Errorf("an answer that takes its time: got %d %s", resp.StatusCode, got)
		}
		return nil
	})
	w.Hang.Store(true)
	before := w.Cancelled.Load()
	if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 502 || !strings.Contains(got, `"error":{`) {
		t.Errorf("an answer that never comes: got %d %s", resp.StatusCode, got)
	}
	r.until("the worker is told", func() bool { return w.Cancelled.Load() == before+1 })
}

// TestHungWorker has a worker accept a stream and compute nothing, while it
// answers its health check.
func TestHungWorker(t *testing.T) {
	f := func(name, metric string, hung, idle time.Duration) {
		t.Run(name, func(t *testing.T) {
			hasten(t, 20*time.Millisecond, hung)
			// One that is held up itself for as long is rightly taken for hung.
			unstalled(t, min(hung, idle)/2, func() error { return oneHangs(t, metric, idle) })
		})
	}
	f("found by its counters", `roundhouse_ejections_total{pool="p",reason="no_progress",worker="1"} 1`, 500*time.Millisecond, time.Hour)
	f("past its deadline", `roundhouse_resumes_total{pool="p",reason="hung",result="ok"} 1`, time.Hour, 600*time.Millisecond)
}

// oneHangs has one of two workers hang under a stream, and looks for a metric
// that tells of it.
func oneHangs(t *testing.T, metric string, idle time.Duration) error {
	a, b := sim.New(sim.Options{Own: true, Words: 5, Pace: time.Minute}), sim.New(sim.Options{Own: true, Words: 5})
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) {
		s.Pools[0].Workers[1].State = "starting"
		s.Door.Limits.Idle = configs.Duration(idle)
	})
	answer := make(chan string, 1)
	go func() {
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
		answer <- got
	}()
	r.until("the stream is at the worker", func() bool { return a.Live.Load() == 1 })
	r.reset(func(workers []control.Worker) { workers[1].State = "ready" })
	if s := hear(t, <-answer); s.text != words(0, 5) || !s.done || s.failed || len(s.ids) != 1 {
		return fmt.Errorf("got %+v", s)
	}
	resp, err := http.Get(a.URL + "/health")
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("the worker's health: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	// The last byte may be there before its request is counted.
	r.until("it is counted", func() bool { return strings.Contains(r.metrics(), metric) })
	return nil
}

// TestBackpressure has a client stop reading: the worker is held up instead of
// the door's memory filling, and told to stop when the client goes, or has not
// read for too long.
func TestBackpressure(t *testing.T) {
	t.Run("it goes", func(t *testing.T) { testBackpressure(t, true) })
	t.Run("it never reads on", func(t *testing.T) {
		writeWithin = 2 * time.Second
		defer func() { writeWithin = 0 }()
		testBackpressure(t, false)
	})
}

func testBackpressure(t *testing.T, leaves bool) {
	var sent atomic.Int64
	gone := make(chan struct{})
	big := strings.Replace(oneEvent, "hi", strings.Repeat("much ", 2000), 1)
	r := stubRig(t, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		go func() { <-r.Context().Done(); close(gone) }()
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, big); err != nil {
				return
			}
			sent.Add(int64(len(big)))
		}
	})
	c := dialRaw(t, r.url)
	body := fmt.Sprintf(chatBody, true, "")
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if line, err := c.in.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Fatalf("got %q %v", line, err)
	}
	last, same := int64(-1), 0
	r.until("the worker is held up", func() bool {
		if now := sent.Load(); now == last {
			same++
		} else {
			last, same = now, 0
		}
		return same > 40
	})
	if sent.Load() > 64<<20 {
		t.Errorf("%d MiB were taken of the worker for a client that does not read", sent.Load()>>20)
	}
	if leaves {
		c.Close()
	}
	<-gone
	r.until("nothing is charged", func() bool { return r.door.State().Workers[0].Requests.InFlight == 0 })
}
