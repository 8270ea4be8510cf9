package balancer_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestHandover replaces the door three times under load, each on a copy of the
// same listener: no request fails.
func TestHandover(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 10, Pace: time.Millisecond})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + first.Addr().String()
	file, err := first.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	first.Close()
	set := control.WorkerSet{Schema: 1, Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Models: []string{"sim"}, Workers: []control.Worker{{Name: "1", URL: w.URL, Kind: "roundhouse", State: "ready", Generation: 1}}}}}
	open := func(id string) (stop func()) {
		l, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := balancer.New(balancer.Options{ID: id, Listener: l, Set: &set, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx, context.Background()) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stop := open("door-0")
	var over atomic.Bool
	var served atomic.Int64
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for !over.Load() {
				resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(chatBody, i%2 == 0, "")))
				if err != nil {
					t.Error(err)
					return
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("got %d %s %v", resp.StatusCode, b, err)
				}
				served.Add(1)
			}
		})
	}
	for i := range 3 {
		target := served.Load() + 100
		(&rig{t: t}).until("a hundred more are served", func() bool { return served.Load() > target })
		next := open(fmt.Sprint("door-", i+1))
		stop()
		stop = next
	}
	over.Store(true)
	clients.Wait()
	stop()
}
