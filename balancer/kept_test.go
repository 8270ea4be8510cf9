package balancer_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestKeptConnectionSeesChanges: a connection that is kept between two requests is
// held to what was put in force while it was idle, here a key that was taken away.
func TestKeptConnectionSeesChanges(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 2})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{{Name: "a", SHA256: []string{hashOf("old")}, Models: []string{"*"}}}
	})
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	ask := func() int {
		t.Helper()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer old\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(okBody), okBody)
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	for range 2 {
		if got := ask(); got != 200 {
			t.Fatalf("a good key: got %d", got)
		}
	}
	set := r.set
	set.Version, set.Door.Keys = 2, []configs.Key{{Name: "a", SHA256: []string{hashOf("new")}, Models: []string{"*"}}}
	if _, err := r.door.Apply(set); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != 401 {
		t.Errorf("the key is gone, and the connection that had it gets %d", got)
	}
}
