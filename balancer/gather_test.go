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
	unstalled(t, idle/2, func() error { return r.sendUnhurried(idle) })
}

// sendUnhurried does so over one connection.
func (r *rig) sendUnhurried(idle time.Duration) error {
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	answers := bufio.NewReader(c)
	got := func(want int) error {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err
		}
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != want {
			return fmt.Errorf("got %d %s; want %d", resp.StatusCode, body, want)
		}
		return nil
	}
	long := `{"model":"sim","messages":[{"role":"user","content":"` + strings.Repeat("ab ", 30000) + `"}]}`
	for _, one := range []struct {
		body   string
		pieces int
		pause  time.Duration
	}{{long, 24, idle / 12}, {okBody, 1, 0}, {long, 3, idle / 20}, {okBody, 1, 0}} {
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", len(one.body))
		tick := time.NewTicker(max(1, one.pause))
		defer tick.Stop()
		for i := range one.pieces {
			if _, err := io.WriteString(c, one.body[i*len(one.body)/one.pieces:(i+1)*len(one.body)/one.pieces]); err != nil {
				return err
			}
			if one.pause > 0 {
				<-tick.C
			}
		}
		if err := got(200); err != nil {
			return err
		}
	}
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(long), long[:40000])
	c.(*net.TCPConn).CloseWrite()
	return got(400)
}
