package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// ticking is a clock that goes on by a second whenever it is read.
func ticking() func() time.Duration {
	now := time.Duration(0)
	return func() time.Duration { now += time.Second; return now }
}

// pieces gives one string a read.
type pieces []string

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	*p = (*p)[1:]
	return n, nil
}

func TestFollow(t *testing.T) {
	f := func(perToken bool, body io.Reader, wantErr string) Sample {
		t.Helper()
		var s Sample
		err := s.follow(body, ticking(), perToken)
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Fatalf("error %v; want %q", err, wantErr)
		}
		return s
	}
	text := func(s string) string { return `data: {"choices":[{"text":"` + s + `"}]}` + "\n\n" }
	usage := `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}` + "\n\n"
	done := "data: [DONE]\n\n"

	// Each event has the time of the read that brought it; the usage event has none.
	s := f(false, &pieces{text("a"), text("b"), text("c"), usage, done}, "")
	if s.First != 1*time.Second || s.Last != 3*time.Second || len(s.Gaps) != 2 || s.Events != 3 || s.Prompt != 7 || s.Output != 3 || s.Text != "abc" {
		t.Errorf("%+v", s)
	}
	// Two events of one read came at once.
	if s := f(false, &pieces{text("a") + text("b"), usage + done}, ""); s.Gaps[0] != 0 {
		t.Errorf("the gap of two events of one read is %s", s.Gaps[0])
	}
	// A role event counts as the first one, as vLLM has it, but carries nothing.
	role := `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	said := `data: {"choices":[{"delta":{"reasoning":"hm"}}]}` + "\n\n"
	if s := f(false, &pieces{role, said, usage, done}, ""); s.First != time.Second || s.Content != 2*time.Second {
		t.Errorf("first %s, content %s; want 1s and 2s", s.First, s.Content)
	}
	// With usage in every event a gap is divided among the tokens that it brought.
	counted := func(n int) string {
		return fmt.Sprintf(`data: {"choices":[{"text":"x"}],"usage":{"prompt_tokens":1,"completion_tokens":%d}}`+"\n\n", n)
	}
	if s := f(true, &pieces{counted(1), counted(5), done}, ""); len(s.Gaps) != 4 || s.Gaps[0] != time.Second/4 {
		t.Errorf("gaps %v; want four of 250ms", s.Gaps)
	}
	if s := f(false, &pieces{counted(1), counted(5), done}, ""); len(s.Gaps) != 1 {
		t.Errorf("gaps %v; want one of events", s.Gaps)
	}
	// Streams that do not end well are failures.
	f(false, &pieces{text("a")}, "without [DONE]")
	f(false, &pieces{text("a"), `data: {"error":{"message":"gone"}}` + "\n\n"}, "gone")
	f(false, &pieces{"data: {\n\n"}, "not JSON")
	f(false, &pieces{done}, "no event")
	f(false, iotest.ErrReader(io.ErrUnexpectedEOF), "unexpected EOF")
	// A line longer than the buffer is one event.
	long := strings.Repeat("y", 50_000)
	if s := f(false, strings.NewReader(text(long)+done), ""); s.Text != long {
		t.Errorf("a long event has %d bytes of text", len(s.Text))
	}
}

// What is sent is what each API wants.
func TestBodies(t *testing.T) {
	f := func(b Backend, want string) {
		t.Helper()
		c := &Client{Backend: b, Model: "m", Logprobs: -1, IgnoreEOS: true, Body: map[string]any{"temperature": 0}}
		got, err := c.encode(&Request{Prompt: "hi", Output: 5})
		if err != nil || string(got) != want {
			t.Errorf("%s\n%s (%v); want\n%s", b, got, err, want)
		}
	}
	f(Completions, `{"ignore_eos":true,"max_tokens":5,"model":"m","prompt":"hi","stream":true,"stream_options":{"include_usage":true},"temperature":0}`)
	f(Chat, `{"ignore_eos":true,"max_completion_tokens":5,"messages":[{"content":"hi","role":"user"}],"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0}`)
	f(Embeddings, `{"input":"hi","model":"m","temperature":0}`)
}

// A refusal says why; a request that the caller ends is cut, not failed.
func TestFailures(t *testing.T) {
	arrived := make(chan struct{})
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/full" {
			http.Error(w, `{"error":{"message":"the queue is full"}}`, http.StatusServiceUnavailable)
			return
		}
		close(arrived)
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	defer server.Close()
	defer close(release)

	c := NewClient(server.URL+"/full", Chat, false)
	defer c.Close()
	var s Sample
	c.Do(context.Background(), &Request{Prompt: "x"}, &s, ticking())
	if s.OK() || !strings.Contains(s.Err, "503") || !strings.Contains(s.Err, "the queue is full") {
		t.Errorf("a refused request: %+v", s)
	}

	slow := NewClient(server.URL+"/slow", Chat, false)
	defer slow.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; cancel() }()
	s = Sample{}
	slow.Do(ctx, &Request{Prompt: "x"}, &s, ticking())
	if !s.Cut || s.Err != "" {
		t.Errorf("a request that was ended: %+v", s)
	}
}
