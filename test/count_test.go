package test

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
	"testing"
	"time"
)

// count asks the door to count from a to b as a stream and checks every byte
// of it: a whole answer, numbers in order, one id, a finish reason, [DONE].
// The demonstration model counts right, so any other number is another
// stream's, and a missing one was lost.
func count(ctx context.Context, door string, a, b int) error {
	_, err := countFirst(ctx, door, a, b)
	return err
}

// countFirst is count with the time that the first byte of the answer took.
func countFirst(ctx context.Context, door string, a, b int) (first time.Duration, err error) {
	body := fmt.Sprintf(`{"model":"roundhouse-demo","stream":true,"temperature":0,"max_tokens":1500,"messages":[{"role":"user","content":"Count from %d to %d by 1."}]}`, a, b)
	req, err := http.NewRequestWithContext(ctx, "POST", door+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("refused: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return 0, fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	lines := bufio.NewReader(res.Body)
	if _, err := lines.Peek(1); err == nil {
		first = time.Since(began)
	}
	text, err := readStream(lines)
	if err != nil {
		return 0, fmt.Errorf("cut after %q: %w", text, err)
	}
	return first, checkCount(text, a, b)
}

// questions are ranges of about sixty numbers that the model counts right when it
// is asked in peace. What it is asked under load are these alone, so that a wrong
// answer is a stream's fault and never the model's.
func questions(t *testing.T, s *system) [][2]int {
	t.Helper()
	const asked = 24
	var mu sync.Mutex
	var right [][2]int
	var asking sync.WaitGroup
	for i := range asked {
		asking.Go(func() {
			a := 1 + i*7
			if err := count(t.Context(), s.Door, a, a+60); err != nil {
				t.Logf("in peace: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			right = append(right, [2]int{a, a + 60})
		})
	}
	asking.Wait()
	if len(right) < asked/2 {
		t.Fatalf("the model counts only %d of %d ranges right", len(right), asked)
	}
	return right
}

// readStream joins the deltas of a chat stream and checks its shape.
func readStream(r io.Reader) (text string, err error) {
	var id, finish string
	done := false
	var all strings.Builder
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue // a blank line or a heartbeat
		}
		if done {
			return all.String(), errors.New("an event after [DONE]")
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
			return all.String(), fmt.Errorf("event %q: %w", data, err)
		}
		if e.Error != nil {
			return all.String(), fmt.Errorf("error event: %s", e.Error.Message)
		}
		if id != "" && e.ID != id {
			return all.String(), fmt.Errorf("id %s became %s", id, e.ID)
		}
		id = e.ID
		for _, c := range e.Choices {
			all.WriteString(c.Delta.Content)
			if c.Finish != "" {
				finish = c.Finish
			}
		}
	}
	switch {
	case lines.Err() != nil:
		return all.String(), fmt.Errorf("cut: %w", lines.Err())
	case !done:
		return all.String(), errors.New("cut: no [DONE]")
	case finish != "stop":
		return all.String(), fmt.Errorf("finish reason %q", finish)
	}
	return all.String(), nil
}

// checkCount holds an answer against the numbers from a to b.
func checkCount(text string, a, b int) error {
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
