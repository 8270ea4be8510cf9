package balancer_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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
		{"long bodies", TestLongBodies}, {"dribbled bodies", TestDribble},
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
