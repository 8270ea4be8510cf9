package supervisor

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// While a door that has no successor ends its last stream, who connects is refused: a
// copy of its listener that the supervisor kept would take connections in, and nobody
// would answer them.
func TestEndRefuses(t *testing.T) {
	b := newBench(t, 1, map[string]string{"FAKE_PACE": "10ms"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := b.start(ctx)
	b.waitReady()
	asking, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	req, err := http.NewRequestWithContext(asking, http.MethodPost, b.door+"/v1/completions", strings.NewReader(`{"stream":true,"max_tokens":1000000}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() {
		t.Fatal("the stream does not begin")
	}
	over := make(chan error, 1)
	go func() { over <- b.s.Shutdown(t.Context(), false) }()
	b.until("who connects is refused", func() bool {
		c, err := net.Dial("tcp", b.cfg.Door.Listen)
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	for range 10 {
		if !lines.Scan() {
			t.Fatal("the stream ends with the door's listener")
		}
	}
	hangUp()
	if err := <-over; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
