package launch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"roundhouse/test/ports"
)

// served is a worker under way.
type served struct {
	url  string
	stop context.CancelFunc
	done chan error
}

// serveDemo starts the demonstration model on a free port.
func serveDemo(t *testing.T, args ...string) *served {
	t.Helper()
	port := ports.Free(t)
	o, err := ParseServe(append([]string{"--host", "127.0.0.1", "--port", fmt.Sprint(port)}, args...), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &served{url: fmt.Sprintf("http://127.0.0.1:%d", port), stop: stop, done: make(chan error, 1)}
	ready := make(chan struct{})
	go func() { s.done <- Serve(ctx, o, slog.New(slog.NewTextHandler(&sees{"msg=ready", ready}, nil))) }()
	select {
	case <-ready:
	case err := <-s.done:
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); http.DefaultClient.CloseIdleConnections() })
	return s
}

// endless is more tokens than a paced worker computes while a test runs.
const endless = 6000

// begin starts a stream of so many tokens and returns once its first event is there.
func (s *served) begin(t *testing.T, tokens int) (*bufio.Reader, io.Closer) {
	t.Helper()
	body := fmt.Sprintf(`{"prompt":"a b c","max_tokens":%d,"ignore_eos":true,"stream":true,"return_token_ids":true}`, tokens)
	resp, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(resp.Body)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: {") {
		t.Fatalf("%q, %v", line, err)
	}
	return r, resp.Body
}

// TestDrainOnStop holds that a worker with time to shut down ends its streams
// well and takes nothing new. It drains for as long as the second of the two
// streams is read.
func TestDrainOnStop(t *testing.T) {
	s := serveDemo(t, "--pace", "10ms", "--shutdown-timeout", "600")
	r, body := s.begin(t, 30)
	defer func() { _ = body.Close() }()
	_, second := s.begin(t, endless)
	defer func() { _ = second.Close() }()
	s.stop()
	for {
		resp, err := http.Get(s.url + "/health")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			break
		}
	}
	resp, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "shutting down") {
		t.Fatalf("while draining: %d %s", resp.StatusCode, text)
	}
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), `"finish_reason":"length"`) || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Fatalf("the stream ended in %q, %v", rest, err)
	}
	_ = second.Close()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
}

// TestAbortOnStop holds that without such time a stream ends with an error
// that cannot be taken for its end.
func TestAbortOnStop(t *testing.T) {
	s := serveDemo(t, "--pace", "10ms")
	r, body := s.begin(t, endless)
	defer func() { _ = body.Close() }()
	s.stop()
	rest, _ := io.ReadAll(r)
	if strings.Contains(string(rest), `"finish_reason":"`) || !strings.Contains(string(rest), `data: {"error":{"message":"the worker is shutting down"`) {
		t.Fatalf("the stream ended in %q", rest)
	}
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
}

// TestStatusEndsOnStop holds that who watches the status is told its end, and that a
// worker does not wait for watchers to leave.
func TestStatusEndsOnStop(t *testing.T) {
	s := serveDemo(t)
	resp, err := http.Get(s.url + "/roundhouse/status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	r := bufio.NewReader(resp.Body)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "{") {
		t.Fatalf("%q, %v", line, err)
	}
	s.stop()
	if rest, err := io.ReadAll(r); err != nil {
		t.Fatalf("the status ended in %q, %v", rest, err)
	}
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
}
