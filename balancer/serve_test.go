package balancer_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// viaFasthttp has the doors of newRig give every request to fasthttp.
var viaFasthttp bool

// TestThroughFasthttp runs the tests of what clients see once more, with every
// request read by fasthttp: the door's own way and fasthttp's are to be one.
func TestThroughFasthttp(t *testing.T) {
	viaFasthttp = true
	defer func() { viaFasthttp = false }()
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"attacks", TestAttacks}, {"bodies", TestBodies}, {"pipelining", TestPipelining}, {"slow clients", TestSlowClients},
		{"answers", TestAnswers}, {"keys", TestKeys}, {"queue", TestQueue}, {"failover", TestFailover}, {"routes", TestRoutes},
		{"metrics", TestMetricsAndPrivate}, {"drain", TestDrainDoor}, {"resume", TestResume}, {"hang-up", TestHangup}, {"TLS", TestTLS},
		{"long bodies", TestLongBodies}, {"dribbled bodies", TestDribble}, {"a drain that waits", TestDrainWaits},
	} {
		t.Run(test.name, test.run)
	}
}

// TestLongBodies sends prompts of all the sizes at which a body changes the way
// that it is held, several on one connection.
func TestLongBodies(t *testing.T) {
	w := sim.New(sim.Options{Words: 3, Capacity: 64 << 20, Context: 4 << 20})
	r := newRig(t, []*sim.Worker{w}, nil)
	for _, stream := range []bool{false, true} {
		for _, n := range []int{1, 4000, 15 << 10, 16 << 10, 17 << 10, 32 << 10, 100 << 10, 512 << 10, 1 << 20, 3 << 20} {
			text := strings.Repeat("ab ", n/3)
			resp, got := r.post("/v1/chat/completions", fmt.Sprintf(`{"model":"sim","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, text))
			if resp.StatusCode != 200 {
				t.Fatalf("%d bytes, stream %v: got %d %s", n, stream, resp.StatusCode, got)
			}
			bodies := w.Bodies()
			if last := bodies[len(bodies)-1]; !strings.Contains(last, `"`+text+`"`) {
				t.Errorf("%d bytes, stream %v: the worker got another prompt of %d bytes", n, stream, len(last))
			}
		}
	}
}

// TestDribble refuses a body that never pauses for long and yet does not come:
// one byte at a time, far below the least upload rate.
func TestDribble(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Limits.BodyIdle = configs.Duration(300 * time.Millisecond)
		s.Door.Limits.UploadRate = 1 << 20
	})
	for _, framing := range []string{"Content-Length: 40000", "Transfer-Encoding: chunked"} {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"+framing+"\r\n\r\n")
			if strings.HasPrefix(framing, "Transfer") {
				io.WriteString(c, "9c40\r\n")
			}
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				if _, err := io.WriteString(c, " "); err != nil {
					return
				}
				<-tick.C
			}
		}()
		c.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 1024)
		n, err := c.Read(b)
		if err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 408 ") {
			t.Errorf("%s: got %q, %v; want 408", framing, b[:n], err)
		}
		c.Close()
	}
	if w.Served.Load() != 0 {
		t.Error("it reached a worker")
	}
	if resp, body := r.post("/v1/chat/completions", okBody); resp.StatusCode != http.StatusOK {
		t.Errorf("a body in time: got %d %s", resp.StatusCode, body)
	}
}

// TestEndWithRequest has clients end their side together with their request. The
// door may answer or not, but it must not wait for another request of theirs.
func TestEndWithRequest(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, nil)
	var all sync.WaitGroup
	defer all.Wait()
	for range 32 {
		all.Go(func() {
			for range 20 {
				c, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(okBody), okBody)
				c.(*net.TCPConn).CloseWrite()
				c.SetReadDeadline(time.Now().Add(time.Minute))
				if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the door keeps the connection")
					return
				}
				c.Close()
			}
		})
	}
}

// TestReuse looks at requests in flight, and cancels some, while many are
// served: each must get its own answer, or be told that it was cancelled, and
// none may be cancelled for another.
func TestReuse(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, nil)
	stop := make(chan struct{})
	var clients, others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, f := range r.door.Requests() {
				if strings.HasPrefix(f.ID, "cancel") {
					r.door.Cancel(f.ID)
				}
			}
		}
	})
	for n := range 8 {
		clients.Go(func() {
			for i := range 100 {
				id := fmt.Sprintf("%s-%d-%d", []string{"keep", "cancel"}[n%2], n, i)
				resp, body := r.post("/v1/chat/completions", okBody, "x-request-id", id)
				if got := resp.Header.Get("x-request-id"); got != id {
					t.Errorf("%s: got the answer to %s", id, got)
				}
				if resp.StatusCode != 200 && (resp.StatusCode != 499 || n%2 == 0) {
					t.Errorf("%s: got %d %s", id, resp.StatusCode, body)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	others.Wait()
}
