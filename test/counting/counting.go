package counting

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
	"time"
)

// Fate is what became of an answer that is not whole.
type Fate string

// The fates.
const (
	Refused Fate = "refused" // it never began
	Mixed   Fate = "mixed"   // it holds what is not its own, or not in its order
	Lost    Fate = "lost"    // it ended too early, or with an error
)

// Fault is an answer that is not whole.
type Fault struct {
	Fate Fate
	Err  error
}

func (f *Fault) Error() string { return string(f.Fate) + ": " + f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// FateOf is what an error of [Count] says; nothing of none.
func FateOf(err error) Fate {
	var f *Fault
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.Fate
	}
	return Lost
}

func fault(fate Fate, format string, args ...any) *Fault {
	return &Fault{fate, fmt.Errorf(format, args...)}
}

// Count asks the door at a URL to count from a to b as a stream, and checks every
// byte of it: a whole answer, numbers in order, one id, a finish reason, [DONE]. The
// model counts right, so any other number is another stream's, and a missing one was
// lost. It returns how long the first text took, calls delta, where it is not nil,
// for each piece of text, and an error is a *[Fault].
func Count(ctx context.Context, door string, a, b int, delta func()) (first time.Duration, err error) {
	body := fmt.Sprintf(`{"model":"roundhouse-demo","stream":true,"temperature":0,"max_tokens":%d,"messages":[{"role":"user","content":"Count from %d to %d by 1."}]}`,
		300+20*(b-a), a, b)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, door+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, fault(Refused, "%w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fault(Refused, "%w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // it says why, where it says anything
		return 0, fault(Refused, "status %d: %s", res.StatusCode, text)
	}
	text, f := read(res.Body, func() {
		if first == 0 {
			first = time.Since(began)
		}
		if delta != nil {
			delta()
		}
	})
	if f == nil {
		f = check(text, a, b)
	}
	if f != nil {
		return first, f
	}
	return first, nil
}

// Range is a question: from where to where to count.
type Range struct{ From, To int }

// Questions asks for n ranges of so many numbers and returns those that the model
// counts right when it is asked in peace. Who asks these alone under load knows that
// a wrong answer is a stream's fault and never the model's.
func Questions(ctx context.Context, door string, n, numbers int) ([]Range, error) {
	var mu sync.Mutex
	var right []Range
	var last error
	var asking sync.WaitGroup
	for i := range n {
		asking.Go(func() {
			r := Range{1 + i*7, i*7 + numbers}
			_, err := Count(ctx, door, r.From, r.To, nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				last = err
				return
			}
			right = append(right, r)
		})
	}
	asking.Wait()
	if len(right) < n/2 {
		return nil, fmt.Errorf("the model counts only %d of %d ranges right: %w", len(right), n, last)
	}
	return right, nil
}

// event is what is read of an event of a stream.
type event struct {
	ID      string
	Error   *struct{ Message string }
	Choices []struct {
		Delta  struct{ Content string }
		Finish string `json:"finish_reason"`
	}
}

// read joins the deltas of a stream and checks its shape.
func read(r io.Reader, delta func()) (string, *Fault) {
	var all strings.Builder
	id, finish, done := "", "", false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue // a blank line or a heartbeat
		}
		if done {
			return "", fault(Mixed, "an event after [DONE]: %s", data)
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return "", fault(Lost, "after %q, event %q: %w", all.String(), data, err)
		}
		if e.Error != nil {
			return "", fault(Lost, "after %q an error event: %s", all.String(), e.Error.Message)
		}
		if id != "" && e.ID != id {
			return "", fault(Mixed, "id %s became %s", id, e.ID)
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
	switch err := lines.Err(); {
	case err != nil:
		return "", fault(Lost, "cut after %q: %w", all.String(), err)
	case !done:
		return "", fault(Lost, "cut after %q: no [DONE]", all.String())
	case finish != "stop":
		return "", fault(Lost, "after %q the finish reason is %q", all.String(), finish)
	}
	return all.String(), nil
}

// check holds an answer against the numbers from a to b.
func check(text string, a, b int) *Fault {
	words := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	for i, w := range words {
		if n, err := strconv.Atoi(w); err != nil || n != a+i {
			return fault(Mixed, "number %d is %s; want %d; in %q", i, w, a+i, text)
		}
	}
	if len(words) != b-a+1 {
		return fault(Mixed, "%d numbers; want %d; in %q", len(words), b-a+1, text)
	}
	return nil
}
