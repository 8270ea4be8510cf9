package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sample is what became of one answer.
type sample struct {
	ttft time.Duration
	err  error
	kind string // refused, mixed, or lost
}

// load is streams that follow one another.
type load struct {
	tokens atomic.Int64
	cancel context.CancelFunc
	ending atomic.Bool
	all    sync.WaitGroup

	mu      sync.Mutex
	samples []sample
}

// load begins n streams over the questions.
func (h *house) load(ctx context.Context, questions [][2]int, n int) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{cancel: cancel}
	for i := range n {
		l.all.Go(func() {
			for k := 0; !l.ending.Load(); k++ {
				q := questions[(i+k*5)%len(questions)]
				s := h.count(ctx, q[0], q[1], &l.tokens)
				l.mu.Lock()
				l.samples = append(l.samples, s)
				l.mu.Unlock()
				if s.err != nil {
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	return l
}

// cut returns what has ended since the last cut.
func (l *load) cut() []sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.samples
	l.samples = nil
	return out
}

// stop lets the streams that run end, and begins no more.
func (l *load) stop() {
	l.ending.Store(true)
	l.all.Wait()
	l.cancel()
}

// length is how far an answer counts: long enough to be under way for seconds, and
// short enough that a worker drains within them.
const length = 12

// questions are ranges of numbers that the model counts right when it is asked in
// peace, so that a wrong answer under load is a stream's fault.
func (h *house) questions(ctx context.Context) ([][2]int, error) {
	var mu sync.Mutex
	var right [][2]int
	var last error
	var asking sync.WaitGroup
	for a := 1; a < 300; a += 13 {
		asking.Go(func() {
			s := h.count(ctx, a, a+length, new(atomic.Int64))
			mu.Lock()
			defer mu.Unlock()
			if s.err != nil {
				last = s.err
				return
			}
			right = append(right, [2]int{a, a + length})
		})
	}
	asking.Wait()
	if len(right) < 6 {
		return nil, fmt.Errorf("the model counts only %d ranges right: %w", len(right), last)
	}
	return right, nil
}

// count asks for the numbers from a to b and checks every one of them.
func (h *house) count(ctx context.Context, a, b int, tokens *atomic.Int64) sample {
	body := fmt.Sprintf(`{"model":"roundhouse-demo","stream":true,"temperature":0,"max_tokens":600,"messages":[{"role":"user","content":"Count from %d to %d by 1."}]}`, a, b)
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.door+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return sample{err: err, kind: "lost"}
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return sample{err: err, kind: "refused"}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // it says why, where it says anything
		return sample{err: fmt.Errorf("status %d: %s", res.StatusCode, text), kind: "refused"}
	}
	s := sample{}
	text, mixed, err := read(res.Body, func() {
		if s.ttft == 0 {
			s.ttft = time.Since(began)
		}
		tokens.Add(1)
	})
	switch {
	case mixed != "":
		s.err, s.kind = errors.New(mixed), "mixed"
	case err != nil:
		s.err, s.kind = fmt.Errorf("after %q: %w", text, err), "lost"
	default:
		if s.err = check(text, a, b); s.err != nil {
			s.kind = "mixed"
		}
	}
	return s
}

// read joins a stream's text and tells each of its deltas.
func read(r io.Reader, delta func()) (text, mixed string, err error) {
	var all strings.Builder
	id, finish, done := "", "", false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue // a blank line or a heartbeat
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var e struct {
			ID      string
			Error   *struct{ Message string }
			Choices []struct {
				Delta  struct{ Content string }
				Finish string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return all.String(), "", fmt.Errorf("event %q: %w", data, err)
		}
		if e.Error != nil {
			return all.String(), "", errors.New(e.Error.Message)
		}
		if id != "" && e.ID != id {
			return all.String(), "id " + id + " became " + e.ID, nil
		}
		id = e.ID
		for _, c := range e.Choices {
			if c.Delta.Content != "" {
				delta()
			}
			all.WriteString(c.Delta.Content)
			if c.Finish != "" {
				finish = c.Finish
			}
		}
	}
	if lines.Err() != nil || !done || finish != "stop" {
		return all.String(), "", fmt.Errorf("cut: %w, [DONE] %t, finish reason %q", lines.Err(), done, finish)
	}
	return all.String(), "", nil
}

// check holds an answer against the numbers from a to b.
func check(text string, a, b int) error {
	words := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	for i, w := range words {
		if n, err := strconv.Atoi(w); err != nil || n != a+i {
			return fmt.Errorf("number %d is %s; want %d; in %q", i, w, a+i, text)
		}
	}
	if len(words) != b-a+1 {
		return fmt.Errorf("%d numbers; want %d; in %q", len(words), b-a+1, text)
	}
	return nil
}
