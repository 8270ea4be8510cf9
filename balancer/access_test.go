package balancer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// accessRig is a door whose log of requests is gathered; lines returns those that
// are there, by the request's id, once there are n.
func accessRig(t *testing.T, change func(*control.WorkerSet)) (r *rig, lines func(n int) map[string]string) {
	var out bytes.Buffer
	var mu sync.Mutex
	doorAccess = locked{&mu, &out}
	defer func() { doorAccess = nil }()
	r = newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 3})}, func(s *control.WorkerSet) {
		s.Log.Access = true
		change(s)
	})
	return r, func(n int) map[string]string {
		t.Helper()
		by := map[string]string{}
		r.until("the lines are there", func() bool {
			mu.Lock()
			defer mu.Unlock()
			for line := range strings.Lines(out.String()) {
				for _, id := range []string{"one", "two", "three", "four", "five", "six", "seven"} {
					if strings.Contains(line, "request="+id+" ") || strings.Contains(line, `"request":"`+id+`"`) {
						by[id] = line
					}
				}
			}
			return len(by) >= n
		})
		return by
	}
}

// TestAccessLog writes a line a request: sizes and times.
func TestAccessLog(t *testing.T) {
	r, lines := accessRig(t, func(s *control.WorkerSet) {
		s.Log.Format = "json"
		s.Door.Keys = []configs.Key{{Name: "team", SHA256: []string{hashOf("k")}, Models: []string{"*"}}}
	})
	r.post("/v1/chat/completions", okBody, "Authorization", "Bearer k", "X-Request-Id", "one", "X-Forwarded-For", "203.0.113.9")
	r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""), "Authorization", "Bearer k", "X-Request-Id", "two")
	r.post("/v1/chat/completions", strings.Replace(okBody, "sim", "nobody", 1), "Authorization", "Bearer k", "X-Request-Id", "three")
	for id, line := range lines(2) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		want := map[string]any{"level": "INFO", "msg": "request", "client": "127.0.0.1", "path": "/v1/chat/completions", "status": 200., "outcome": "ok", "pool": "p", "worker": "p/1", "model": "sim", "key": "team", "generated_tokens": 3.}
		for name, v := range want {
			if m[name] != v {
				t.Errorf("%s: %s is %v; want %v", id, name, m[name], v)
			}
		}
		for _, name := range []string{"seconds", "queue_seconds", "ttft_seconds", "prompt_tokens", "cached_tokens"} {
			if _, ok := m[name].(float64); !ok {
				t.Errorf("%s: %s is %v", id, name, m[name])
			}
		}
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(m["time"])); err != nil || time.Since(at) > time.Hour {
			t.Errorf("%s: the time is %v", id, m["time"])
		}
		if strings.Contains(line, "count") {
			t.Errorf("a prompt is in the log: %s", line)
		}
	}
}

// TestClientBehindProxy: X-Forwarded-For counts from trusted addresses alone, and
// of it what such an address has written.
func TestClientBehindProxy(t *testing.T) {
	for _, c := range []struct {
		trusted, want string
		forwarded     []string
	}{
		{"", "127.0.0.1", []string{"203.0.113.9"}},
		{"10.0.0.0/8", "127.0.0.1", []string{"203.0.113.9"}},
		{"127.0.0.0/8", "127.0.0.1", nil},
		{"127.0.0.0/8", "203.0.113.9", []string{"203.0.113.9"}},
		{"127.0.0.1", "203.0.113.9", []string{"198.51.100.1, 203.0.113.9"}},
		{"127.0.0.0/8", "203.0.113.9", []string{"198.51.100.1, 203.0.113.9, 127.0.0.7"}},
		{"127.0.0.0/8", "203.0.113.9", []string{"198.51.100.1", "203.0.113.9", "127.0.0.7"}},
		{"127.0.0.0/8", "2001:db8::1", []string{"[2001:db8::1]:443"}},
		{"127.0.0.0/8", "127.0.0.7", []string{"203.0.113.9, unknown, 127.0.0.7"}},
		{"127.0.0.0/8", "127.0.0.1", []string{"\\\" msg=forged"}},
	} {
		r, lines := accessRig(t, func(s *control.WorkerSet) {
			if c.trusted != "" {
				s.Door.TrustedProxies = []string{c.trusted}
			}
		})
		req := []string{"X-Request-Id", "one"}
		for _, f := range c.forwarded {
			req = append(req, "X-Forwarded-For", f)
		}
		r.askWith(t, req)
		if line := lines(1)["one"]; !strings.Contains(line, " client="+c.want+" ") {
			t.Errorf("%q from %q: %s", c.forwarded, c.trusted, line)
		}
	}
}

// askWith sends one request with header fields that may repeat.
func (r *rig) askWith(t *testing.T, head []string) {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: door\r\nConnection: close\r\nContent-Length: %d\r\n", len(okBody))
	for i := 0; i < len(head); i += 2 {
		fmt.Fprintf(c, "%s: %s\r\n", head[i], head[i+1])
	}
	fmt.Fprintf(c, "\r\n%s", okBody)
	var got bytes.Buffer
	if _, err := got.ReadFrom(c); err != nil || !strings.HasPrefix(got.String(), "HTTP/1.1 200") {
		t.Fatalf("%v: got %s", err, got.String())
	}
}
