package differential

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Request is one request.
type Request struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Raw     *string           `json:"raw,omitempty"` // a body that is no JSON, in its place
	Headers map[string]string `json:"headers,omitempty"`
}

// Lines reads a file of JSON lines.
func Lines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []T
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 4<<20)
	for n := 1; scan.Scan(); n++ {
		var v T
		if err := json.Unmarshal(scan.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		out = append(out, v)
	}
	return out, scan.Err()
}

// patience is how long one answer may take.
const patience = 2 * time.Minute

// client follows no redirects: where a server sends one to is part of its answer.
// It takes a connection for each request, because vLLM drops those on which it
// failed.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Ask sends a request to the server at url and reads what it answers.
func (q *Request) Ask(url string) (*Answer, error) {
	body := []byte(q.Body)
	if q.Raw != nil {
		body = []byte(*q.Raw)
	}
	r, err := http.NewRequest(q.Method, strings.TrimSuffix(url, "/")+q.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 || q.Method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, v := range q.Headers {
		r.Header.Set(name, v)
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Name, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Name, err)
	}
	a := &Answer{Name: q.Name, Status: res.StatusCode}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		a.readStream(data)
	} else {
		a.readWhole(data)
	}
	a.settle()
	return a, nil
}
