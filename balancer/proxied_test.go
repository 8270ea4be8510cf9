package balancer_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// PROXY headers of 203.0.113.9, and those that name nobody.
const (
	proxyOne     = "PROXY TCP4 203.0.113.9 10.0.0.1 56324 443\r\n"
	proxyTwo     = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x09\x0a\x00\x00\x01\xdc\x04\x01\xbb"
	proxyUnknown = "PROXY UNKNOWN\r\n"
	proxyLocal   = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
)

// asked is a plain request with a connection's first bytes before it.
func asked(first, id, fields string) string {
	return first + fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-Request-Id: %s\r\n%sContent-Length: %d\r\n\r\n%s", id, fields, len(okBody), okBody)
}

// TestProxyProtocol: a header counts from the proxies named alone, and its client is the
// connection's. Who sends none, as looks at the door's health do, is served as before.
func TestProxyProtocol(t *testing.T) {
	refused := func(r *rig, name, first string) {
		t.Helper()
		statuses, closed := r.raw(asked(first, "no", ""), time.Minute, 1)
		if r.workers[0].Served.Load() != 0 || len(statuses) > 0 && statuses[0] != 400 && statuses[0] != 505 || len(statuses) == 0 && !closed {
			t.Errorf("%s: got %v, closed %v", name, statuses, closed)
		}
	}
	served := func(r *rig, name, first, fields string) {
		t.Helper()
		if statuses, closed := r.raw(asked(first, name, fields), time.Minute, 1); len(statuses) != 1 || statuses[0] != 200 {
			t.Errorf("%s: got %v, closed %v", name, statuses, closed)
		}
	}
	r, lines := accessRig(t, func(s *control.WorkerSet) { s.Door.ProxyProtocol = []string{"127.0.0.0/8"} })
	refused(r, "two headers", proxyOne+proxyOne)
	refused(r, "malformed", "PROXY TCP4 nobody 10.0.0.1 1 2\r\n")
	refused(r, "without end", "PROXY TCP4 "+strings.Repeat("1", 4096))
	served(r, "one", proxyOne, "")
	served(r, "two", proxyTwo, "")
	served(r, "three", proxyOne, "X-Forwarded-For: 198.51.100.1\r\n") // the client's own
	served(r, "four", proxyUnknown, "")
	served(r, "five", proxyLocal, "")
	served(r, "six", "", "")
	served(r, "seven", "\r\n", "")
	for id, line := range lines(7) {
		want := "203.0.113.9"
		if id == "four" || id == "five" || id == "six" || id == "seven" {
			want = "127.0.0.1"
		}
		if !strings.Contains(line, " client="+want+" ") {
			t.Errorf("%s is not %s's: %s", id, want, line)
		}
	}

	r, lines = accessRig(t, func(s *control.WorkerSet) { s.Door.ProxyProtocol = []string{"10.0.0.0/8"} })
	refused(r, "not a proxy, version 1", proxyOne)
	refused(r, "not a proxy, version 2", proxyTwo)
	served(r, "one", "", "")
	if line := lines(1)["one"]; !strings.Contains(line, " client=127.0.0.1 ") {
		t.Error(line)
	}
}

// TestProxyHeaderInPieces: a header may come byte by byte, before TLS, and what the
// address that it names says in X-Forwarded-For is believed if that is trusted too.
func TestProxyHeaderInPieces(t *testing.T) {
	files, pool := certificate(t)
	r, lines := accessRig(t, func(s *control.WorkerSet) {
		s.Door.TLS, s.Door.ProxyProtocol, s.Door.TrustedProxies = files, []string{"127.0.0.1"}, []string{"203.0.113.0/24"}
	})
	for id, first := range map[string]string{"one": proxyOne, "two": proxyTwo} {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range first {
			io.WriteString(c, first[i:i+1])
		}
		over := tls.Client(c, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
		io.WriteString(over, asked("", id, "X-Forwarded-For: 198.51.100.1\r\n"))
		resp, err := http.ReadResponse(bufio.NewReader(over), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
	}
	for id, line := range lines(2) {
		if !strings.Contains(line, " client=198.51.100.1 ") {
			t.Errorf("%s: %s", id, line)
		}
	}
}

// TestProxyIsNotWaitedForLong: who may send a header and sends nothing, or a part of one,
// is let go as who sends no request is.
func TestProxyIsNotWaitedForLong(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true})}, func(s *control.WorkerSet) {
		s.Door.ProxyProtocol, s.Door.Limits.HeaderRead = []string{"127.0.0.1"}, configs.Duration(50*time.Millisecond)
	})
	for _, first := range []string{"", "P", proxyOne[:20], proxyTwo[:14], proxyTwo[:20]} {
		if statuses, closed := r.raw(first, time.Minute, 0); !closed || len(statuses) > 0 {
			t.Errorf("%q: got %v, closed %v", first, statuses, closed)
		}
	}
}

// TestProxiedPromises: what one client may announce is counted by the client that a
// header names.
func TestProxiedPromises(t *testing.T) {
	const all = 64 << 20
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{})}, func(s *control.WorkerSet) {
		s.Door.Memory, s.Door.ProxyProtocol = 8*all, []string{"127.0.0.1"}
	})
	announced := func(client string) net.Conn {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "PROXY TCP4 %s 10.0.0.1 1 2\r\nPOST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n{", client, all)
		return c
	}
	status := make(chan int, 3)
	for _, client := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.1"} {
		c := announced(client)
		go func() {
			if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				status <- resp.StatusCode
			}
		}()
	}
	if got := <-status; got != 503 {
		t.Errorf("the second of one client is answered %d", got)
	}
	if n := len(status); n != 0 {
		t.Errorf("%d clients more are refused", n)
	}
}

// TestProxiedMoves: a connection that moves to the next door keeps the client that its
// header has named.
func TestProxiedMoves(t *testing.T) {
	w := newCounted(t)
	set := control.WorkerSet{Schema: 1, Holder: "test", Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Models: []string{"sim"},
		Workers: []control.Worker{{Name: "1", URL: w.URL, Kind: "vllm", State: "ready", Generation: 1}}}}}
	set.Log.Access, set.Door.ProxyProtocol = true, []string{"127.0.0.0/8"}
	ds := newDoors(t)
	ds.start("door-1")
	ds.must("door-1", "PUT", "/worker-set", set, nil)
	ds.reach("door-1")
	c := dialRaw(t, ds.url)
	io.WriteString(c, proxyOne)
	c.ask(t, true, false)
	ds.start("door-2")
	ds.must("door-2", "PUT", "/worker-set", set, nil)
	ds.reach("door-2")
	ds.leave("door-1")
	c.ask(t, true, false)
	for _, id := range []string{"door-1", "door-2"} {
		(&rig{t: t}).until(id+" has told whom it served", func() bool {
			text, err := os.ReadFile(filepath.Join(ds.dir, id+".log"))
			return err == nil && strings.Contains(string(text), " client=203.0.113.9 ")
		})
	}
}
