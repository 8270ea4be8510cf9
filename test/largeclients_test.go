//go:build clients && large

package test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"roundhouse/test/differential"
)

var (
	large      = flag.String("large", "../build/vllm", "the Python environment of the large clients")
	recordSent = flag.Bool("record", false, "write their requests to "+sentFile)
)

// TestLargeClients is TestClients for programs that bring gigabytes with them: vLLM's
// benchmark, guidellm and lm-evaluation-harness. TestSent repeats their requests without
// them.
func TestLargeClients(t *testing.T) {
	s := start(t, strings.Replace(twoWorkers, "%s", "", 1))
	all, err := differential.Lines[differential.Request](sentFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vllmbench", "guidellm", "lmeval"} {
		t.Run(name, func(t *testing.T) {
			r := recorderOf(t, name, s.Door)
			turned := rotations(t, s)
			client(t, r.url, filepath.Join(*large, "bin/python"), "clients/python/"+name+"_client.py")
			turned()
			all = slices.DeleteFunc(all, func(q differential.Request) bool { return q.Name == name })
			all = append(all, r.sorted()...)
		})
	}
	if !*recordSent || t.Failed() {
		return
	}
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	for _, q := range all {
		if err := lines.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(sentFile, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// recorder stands between a client and the door and keeps the requests, of each kind
// twice; of the harness all, because each is a question of its own.
type recorder struct {
	name string
	url  string
	mu   sync.Mutex
	kept map[string]differential.Request // by body
	kind map[string]int                  // requests kept of a path
}

func recorderOf(t *testing.T, name, door string) *recorder {
	t.Helper()
	to, err := url.Parse(door)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{name: name, kept: map[string]differential.Request{}, kind: map[string]int{}}
	pass := httputil.NewSingleHostReverseProxy(to)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		r.keep(q, body)
		pass.ServeHTTP(w, q)
	}))
	t.Cleanup(h.Close)
	r.url = h.URL
	return r
}

func (r *recorder) keep(q *http.Request, body []byte) {
	if strings.HasPrefix(q.UserAgent(), "Python-urllib") {
		return // our program's own
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := q.Method + " " + q.URL.Path + " " + string(body)
	if _, ok := r.kept[key]; ok || r.name != "lmeval" && r.kind[q.URL.Path] == 2 {
		return
	}
	r.kind[q.URL.Path]++
	r.kept[key] = differential.Request{Name: r.name, Method: q.Method, Path: q.URL.Path, Body: body}
}

// sorted are the requests, in an order that is the same every time.
func (r *recorder) sorted() (list []differential.Request) {
	for _, key := range slices.Sorted(maps.Keys(r.kept)) {
		list = append(list, r.kept[key])
	}
	return list
}
