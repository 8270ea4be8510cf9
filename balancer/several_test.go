package balancer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestSeveral sends one request three times at once: all are under way together, each
// one's events come with its number, and a refusal in its own words.
func TestSeveral(t *testing.T) {
	var came atomic.Int32
	var together sync.WaitGroup
	together.Add(3)
	s := httptest.NewServer(several(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := came.Add(1)
		together.Done()
		together.Wait() // none is answered before all have come
		if r.URL.RawQuery != "" || string(body) != `{"model":"m"}` {
			t.Errorf("one came as %s %s", r.URL, body)
		}
		w.Header().Set("X-Request-Id", fmt.Sprint("id-", n))
		w.Header().Set("X-Roundhouse-Worker", fmt.Sprint("chat/", n))
		if n == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":{"message":"the queue is full"}}`)
			return
		}
		fmt.Fprint(w, "data: {\"a\":1}\n\nda")
		if n == 2 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "ta: [DONE]\n\n")
	})))
	defer s.Close()
	resp, err := http.Post(s.URL+"/try/v1/chat/completions?times=3", "application/json", strings.NewReader(`{"model":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said := map[int][]string{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		var p piece
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			t.Fatal(err)
		}
		switch {
		case p.ID != nil:
			said[p.N] = append(said[p.N], strings.Replace(p.Worker, strings.TrimPrefix(*p.ID, "id-"), "N", 1))
		case p.Data != nil:
			said[p.N] = append(said[p.N], *p.Data)
		default:
			said[p.N] = append(said[p.N], "end "+p.Error)
		}
	}
	count := map[string]int{}
	for _, words := range said {
		count[strings.Join(words, "|")]++
	}
	if len(said) != 3 || count[`chat/N|{"a":1}|[DONE]|end `] != 1 || count[`chat/N|{"a":1}|end the answer broke off`] != 1 || count["chat/N|end the queue is full"] != 1 {
		t.Errorf("it told %v", said)
	}
}

// TestSeveralBounds: a number that is none, or too large, and a body that is not held.
func TestSeveralBounds(t *testing.T) {
	h := several(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "once") }))
	f := func(query, body string, status int, words string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/try/x"+query, strings.NewReader(body)))
		if w.Code != status || !strings.Contains(w.Body.String(), words) {
			t.Errorf("%s: %d %s; want %d %s", query, w.Code, w.Body, status, words)
		}
	}
	f("", "{}", 200, "once")
	f("?times=0", "{}", 400, "give 1 to 64")
	f("?times=many", "{}", 400, "give 1 to 64")
	f("?times=65", "{}", 400, "give 1 to 64")
	f("?times=2", strings.Repeat("x", mostRepeated+1), 413, "may have 1048576 bytes")
}
