package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestDrainWaits drains a worker that someone else runs, at a door that runs alone, with
// a stream on it: the command waits until the stream has ended, and undrain until the
// worker serves again.
func TestDrainWaits(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Pace: 20 * time.Millisecond})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	front, api := listen(), listen()
	set := control.WorkerSet{Schema: 1, Pools: []control.Pool{{Name: "p", Workers: []control.Worker{{Name: "1", URL: w.URL, Kind: "vllm", State: "ready"}}}}}
	d, err := balancer.New(balancer.Options{Listener: front, Set: &set, Log: slog.New(slog.DiscardHandler), DrainTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() { served <- d.Run(ctx, ctx) }()
	d.ServeAdmin(api, balancer.Admin{})
	defer func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	command := func(name string) string {
		var out bytes.Buffer
		c := &console{in: strings.NewReader(""), out: &out, err: &out, env: os.LookupEnv}
		if code := c.run(root(c), []string{name, "p/1", "--wait", "--admin", api.Addr().String()}); code != 0 {
			t.Errorf("%s ended with %d: %s", name, code, out.String())
		}
		return out.String()
	}
	command("undrain") // it is reached
	resp, err := http.Post("http://"+front.Addr().String()+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"sim","stream":true,"max_tokens":30,"messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	whole := make(chan error, 1)
	go func() {
		text, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(text), "[DONE]") {
			err = io.ErrUnexpectedEOF
		}
		whole <- err
	}()
	if w.Live.Load() != 1 {
		t.Fatal("the stream does not run")
	}
	command("drain")
	if n := d.State().Workers[0].Requests.InFlight; n != 0 {
		t.Errorf("the command ended with %d requests at the worker", n)
	}
	if err := <-whole; err != nil {
		t.Errorf("the stream that was there: %v", err)
	}
	if out := command("undrain"); !strings.Contains(out, "p/1") {
		t.Errorf("undrain printed %q", out)
	}
}
