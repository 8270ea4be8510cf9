package live_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/supervisor"
	"roundhouse/test/ports"
)

// house is a supervisor with a real door before workers that count words.
type house struct {
	*testing.T
	api, door string
	workers   []*sim.Worker
}

const token, readToken = "operators-token", "readers-token"

func newHouse(t *testing.T, workers ...*sim.Worker) *house {
	t.Helper()
	h := &house{T: t, workers: workers}
	dir := t.TempDir()
	admin, listener := ports.Address(t), listen(t)
	text := fmt.Sprintf("state_dir = %q\nadmin {\n listen = %q\n token = %q\n read_token = %q\n}\npool \"chat\" {\n driver = \"static\"\n", dir, admin, token, readToken)
	for i, w := range workers {
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		text += fmt.Sprintf(" worker \"w%d\" {\n url = %q\n }\n", i+1, w.URL)
	}
	path := filepath.Join(dir, "house.hcl")
	if err := os.WriteFile(path, []byte(text+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func() (*configs.Config, error) {
		return configs.Load(path, func(string) (string, bool) { return "", false })
	}
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "door.sock")
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	door, err := balancer.New(balancer.Options{ID: "door-1", Listener: listener, Socket: socket, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := supervisor.New(supervisor.Options{Config: cfg, Load: load, File: path, Doors: []string{socket}, Version: "0.0", Sysfs: "/nowhere", Proc: "/nowhere", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- door.Run(ctx, context.Background()) }()
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	h.api, h.door = "http://"+admin, "http://"+listener.Addr().String()
	h.until("every worker is ready", func() bool {
		_, text := h.ask("GET", "/api/workers", "")
		return strings.Count(text, `"state":"ready"`) == len(workers)
	})
	return h
}

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// until waits for something that must come true.
func (h *house) until(what string, ok func() bool) {
	h.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for range 3000 {
		if ok() {
			return
		}
		<-look.C
	}
	h.Fatalf("it never came true that %s", what)
}

func (h *house) open(ctx context.Context, method, path, body string, fields ...string) *http.Response {
	h.Helper()
	r, err := http.NewRequestWithContext(ctx, method, h.api+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	return res
}

func (h *house) ask(method, path, body string, fields ...string) (int, string) {
	h.Helper()
	res := h.open(h.Context(), method, path, body, fields...)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// chat sends a request to the door.
func (h *house) chat(id string) {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), "POST", h.door+"/v1/chat/completions", strings.NewReader(`{"model":"sim","stream":true,"messages":[{"role":"user","content":"count"}]}`))
	if err != nil {
		h.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", id)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Error(err)
		return
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err != nil {
		h.Error(err)
		return
	}
}

// message is one of a stream's.
type message struct {
	id, name string
	data     []byte
}

// tab is an open stream.
type tab struct {
	*house
	in   *bufio.Reader
	stop func()
}

func (h *house) tab(query string, fields ...string) *tab {
	h.Helper()
	ctx, stop := context.WithCancel(h.Context())
	res := h.open(ctx, "GET", "/api/stream"+query, "", fields...)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		h.Fatalf("the stream answers %d, %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	h.Cleanup(func() { stop(); res.Body.Close() })
	return &tab{h, bufio.NewReader(res.Body), stop}
}

// next is the next message; comments are no messages.
func (s *tab) next() (m message) {
	s.Helper()
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			s.Fatalf("the stream ends: %v", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.name = value
		case "data":
			m.data = []byte(value)
		case "":
			if m.name != "" {
				return m
			}
		}
	}
}

// wait is the next message of a kind that is as it should be.
func (s *tab) wait(name string, ok func(message) bool) message {
	s.Helper()
	for range 2000 {
		if m := s.next(); m.name == name && (ok == nil || ok(m)) {
			return m
		}
	}
	s.Fatalf("no %s came that is as it should be", name)
	return message{}
}

func read[T any](t testing.TB, data []byte) (v T) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}
