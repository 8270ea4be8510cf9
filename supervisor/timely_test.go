package supervisor

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"roundhouse/supervisor/journal"
)

// A law: one slow reader or writer of the admin API delays nobody. One has sent one
// byte of a command's body, one asks for all events and reads none; the API answers
// others meanwhile, and a worker that falls is restarted.
func TestSlowAdminDelaysNobody(t *testing.T) {
	b := newBench(t, 1, nil)
	b.run()
	long := strings.Repeat("x", 64<<10)
	if err := b.s.ask(t.Context(), func() {
		for range 400 { // more than a socket's buffers take
			b.s.events.recent = append(b.s.events.recent, journal.Event{Kind: "test", Text: long})
		}
		b.s.flushEvents()
	}); err != nil {
		t.Fatal(err)
	}
	slow := func(head string) {
		conn, err := net.Dial("tcp", b.cfg.Admin.Listen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := fmt.Fprintf(conn, head, b.cfg.Admin.Listen); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/api/pools/chat/rotate", "/api/pools/chat/scale", "/api/workers/chat/1/drain", "/api/schedule", "/api/reload", "/api/upgrade"} {
		slow("POST " + path + " HTTP/1.1\r\nHost: %s\r\nContent-Length: 20\r\n\r\n{")
	}
	slow("GET /api/events?limit=100000 HTTP/1.1\r\nHost: %s\r\n\r\n")
	slow("GET /api/workers/chat/1/logs?follow=true HTTP/1.1\r\nHost: %s\r\n\r\n")
	victim := b.workers()[0]
	if err := syscall.Kill(victim.Place.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("it is restarted", func() bool {
		w := b.workers()
		return len(w) == 1 && w[0].State == "ready" && w[0].Generation == victim.Generation+1
	})
}
