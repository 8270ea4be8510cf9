package balancer_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// panicky is a log that panics over the request whose id is "boom".
type panicky struct{}

func (panicky) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(" request=boom ")) {
		panic("BUG: boom")
	}
	return len(p), nil
}

// TestPanic: a panic in one request is that request's end, and nobody else's:
// streams that run go on, and the next request is answered.
func TestPanic(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 60})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	set := control.WorkerSet{Schema: 1, Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Workers: []control.Worker{{Name: "1", URL: w.URL, Generation: 1, Kind: "roundhouse", State: "ready"}}}}}
	set.Log.Access = true
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door, err := balancer.New(balancer.Options{Listener: ln, Set: &set, Access: panicky{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- door.Run(ctx, context.Background()) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	// A connection that the door is closing may be taken for an idle one; only what
	// goes boom may meet that.
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(client *http.Client, id string) (string, error) {
		req, err := http.NewRequest("POST", "http://"+ln.Addr().String()+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Request-Id", id)
		res, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return string(text), err
	}
	(&rig{t: t}).until("the worker is reached", func() bool { text, err := post(fresh, "ready"); return err == nil && strings.Contains(text, "[DONE]") })
	others := make(chan error, 4)
	for i := range cap(others) {
		go func() {
			text, err := post(fresh, fmt.Sprint("other-", i))
			if err == nil && !strings.Contains(text, "[DONE]") {
				err = fmt.Errorf("cut: %q", text)
			}
			others <- err
		}()
	}
	for range 3 {
		_, _ = post(client, "boom") // whatever becomes of it
	}
	for range cap(others) {
		if err := <-others; err != nil {
			t.Errorf("another stream: %v", err)
		}
	}
	if text, err := post(fresh, "after"); err != nil || !strings.Contains(text, "[DONE]") {
		t.Errorf("the next request: %q %v", text, err)
	}
}
