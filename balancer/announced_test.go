package balancer_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

const testKey = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"

// announce sends a head that announces a body, and the first byte of it.
func announce(t *testing.T, r *rig, head string, length int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n{", length, head); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAnnouncedHoldsNothing has clients announce bodies as long as all the memory
// that the door has for them, and send a byte: those without a key are refused at
// once, and others hold up nobody.
func TestAnnouncedHoldsNothing(t *testing.T) {
	const all = 64 << 20
	memory := func(s *control.WorkerSet) { s.Door.Memory = all }
	keyed := func(s *control.WorkerSet) {
		memory(s)
		s.Door.Keys = []configs.Key{{Name: "k", SHA256: []string{testKey}}}
	}
	t.Run("without a key", func(t *testing.T) {
		for _, head := range []string{"", "Authorization: Bearer wrong\r\n", "Connection: close\r\n", "Expect: 100-continue\r\n"} {
			r := newRig(t, []*sim.Worker{sim.New(sim.Options{})}, keyed)
			c := announce(t, r, head, all)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != 401 || !resp.Close {
				t.Fatalf("%q: %v %v", head, resp, err)
			}
			io.Copy(io.Discard, resp.Body)
			if resp, got := r.post("/v1/chat/completions", okBody, "Authorization", "Bearer test"); resp.StatusCode != 200 {
				t.Errorf("somebody else: %d %s", resp.StatusCode, got)
			}
		}
	})
	t.Run("where none is needed", func(t *testing.T) {
		r := newRig(t, []*sim.Worker{sim.New(sim.Options{})}, memory)
		for range 40 {
			announce(t, r, "", all)
		}
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
			t.Errorf("somebody else: %d %s", resp.StatusCode, got)
		}
	})
	t.Run("by one address, for fasthttp", func(t *testing.T) {
		r := newRig(t, []*sim.Worker{sim.New(sim.Options{})}, func(s *control.WorkerSet) { s.Door.Memory = 4 * all })
		status := make(chan int, 2)
		for range 2 {
			c := announce(t, r, "Connection: close\r\n", all)
			go func() {
				if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
					resp.Body.Close()
					status <- resp.StatusCode
				}
			}()
		}
		if got := <-status; got != 503 {
			t.Errorf("of two such bodies at once, one is answered %d", got)
		}
		if resp, got := r.post("/v1/chat/completions", okBody, "Connection", "close"); resp.StatusCode != 200 {
			t.Errorf("a short body: %d %s", resp.StatusCode, got)
		}
	})
	t.Run("a long body comes in pieces", func(t *testing.T) {
		r := newRig(t, []*sim.Worker{sim.New(sim.Options{})}, memory)
		long := fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":%q}]}`, strings.Repeat("long ", 4<<20))
		if resp, got := r.post("/v1/chat/completions", long); resp.StatusCode != 200 {
			t.Errorf("%d %.200s", resp.StatusCode, got)
		}
		if w := r.workers[0].Bodies(); len(w) != 1 || !strings.HasSuffix(w[0], long[len(long)-1000:]) || len(w[0]) < len(long) {
			t.Error("the worker got another body")
		}
	})
}

// TestPromisesBehindProxies: behind a trusted proxy each client has promises of its own,
// by the address that the proxy names.
func TestPromisesBehindProxies(t *testing.T) {
	const all = 64 << 20
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{})}, func(s *control.WorkerSet) {
		s.Door.Memory, s.Door.TrustedProxies = 8*all, []string{"127.0.0.0/8"}
	})
	status := make(chan int, 4)
	for _, client := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.1"} {
		c := announce(t, r, "Connection: close\r\nX-Forwarded-For: "+client+"\r\n", all)
		go func() {
			if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				resp.Body.Close()
				status <- resp.StatusCode
			}
		}()
	}
	if got := <-status; got != 503 {
		t.Errorf("the second of one client is answered %d", got)
	}
	if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
		t.Errorf("somebody else: %d %s", resp.StatusCode, got)
	}
	if n := len(status); n != 0 {
		t.Errorf("%d of three clients behind one proxy are refused too", n)
	}
}
