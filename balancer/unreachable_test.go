package balancer_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
)

// TestUnreachable says of a worker that never answered why it has not: nobody
// listens there, or it wants another key.
func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer locked.Close()
	set := control.WorkerSet{Schema: 1, Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Policy: "least_kv", Workers: []control.Worker{
		{Name: "nobody", URL: nobody, Generation: 1, Kind: "vllm", State: "ready"},
		{Name: "locked", URL: locked.URL, Generation: 1, Kind: "vllm", State: "ready"},
	}}}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d, err := balancer.New(balancer.Options{Listener: ln, Set: &set, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, context.Background()) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	want := map[string]string{"p/nobody": "connection refused", "p/locked": "401 Unauthorized"}
	said := map[string]string{}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(30 * time.Second); ; {
		right := 0
		for _, w := range d.State().Workers {
			said[w.ID] = w.State + ": " + w.Reason
			if w.State == "unreachable" && strings.Contains(w.Reason, want[w.ID]) {
				right++
			}
		}
		if right == len(want) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("got %v; want %v", said, want)
		}
	}
}
