package balancer_test

import (
	"bufio"
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

// TestUnhurriedBodies sends long bodies in pieces smaller than the door is woken
// for: one that never pauses for long is served however long it takes, what
// follows it on the connection is not held up, and one that ends in the middle
// is told so, not left until its time is over.
func TestUnhurriedBodies(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1, Capacity: 1 << 20, Context: 1 << 20})
	const idle = time.Second
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Limits.BodyIdle = configs.Duration(idle)
		s.Door.Limits.UploadRate = 1024
	})
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	answers := bufio.NewReader(c)
	send := func(body string, pieces int, pause time.Duration) {
		t.Helper()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", len(body))
		tick := time.NewTicker(max(1, pause))
		defer tick.Stop()
		for i := range pieces {
			if _, err := io.WriteString(c, body[i*len(body)/pieces:(i+1)*len(body)/pieces]); err != nil {
				t.Fatal(err)
			}
			if pause > 0 {
				<-tick.C
			}
		}
	}
	got := func(want int) {
		t.Helper()
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != want {
			t.Errorf("got %d %s; want %d", resp.StatusCode, body, want)
		}
	}
	long := `{"model":"sim","messages":[{"role":"user","content":"` + strings.Repeat("ab ", 30000) + `"}]}`
	send(long, 24, idle/12)
	got(200)
	send(okBody, 1, 0)
	got(200)
	send(long, 3, idle/20)
	got(200)
	send(okBody, 1, 0)
	got(200)
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(long), long[:40000])
	c.(*net.TCPConn).CloseWrite()
	got(400)
}
