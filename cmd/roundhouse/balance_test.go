package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestSignals ends a door by signals: the first lets its streams go on, the
// second does not.
func TestSignals(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Pace: time.Minute})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	set := control.WorkerSet{Schema: 1, Pools: []control.Pool{{Name: "p", Workers: []control.Worker{{Name: "1", URL: w.URL, Kind: "vllm", State: "ready"}}}}}
	d, err := balancer.New(balancer.Options{Listener: ln, Set: &set, Log: slog.New(slog.DiscardHandler), DrainTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- runDoor(t.Context(), d) }()
	until := func(what string, ok func() bool) {
		t.Helper()
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for range 12000 { // a minute
			if ok() {
				return
			}
			<-look.C
		}
		t.Fatalf("it never came true that %s", what)
	}
	until("the worker is reached", func() bool { return d.State().Workers[0].Reached })
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+ln.Addr().String()+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"sim","stream":true,"messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		answer <- fmt.Sprint(string(b), err)
	}()
	until("the stream runs", func() bool { return w.Live.Load() == 1 })
	term := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	term()
	until("the door drains", func() bool { return d.State().Phase == "draining" })
	if w.Live.Load() != 1 || len(done) > 0 {
		t.Error("the stream was cut by the first signal")
	}
	term()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := <-answer; !strings.Contains(got, "shutting_down") || strings.Contains(got, "[DONE]") {
		t.Errorf("the client got %q", got)
	}
}
