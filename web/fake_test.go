package web_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/web"
)

// fake is an admin API that is in whatever state a test wants: the pages that need
// a thousand workers or a halted rotation are looked at without any. What it sends
// is held to docs/openapi.yaml by TestFakeIsHonest; that clicks do what they say is
// shown with the real program.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	scene    scene
	silent   bool // says nothing more, as a process that is stopped
	cut      chan struct{}
	token    string
	commands []string // "POST /api/… body", as they came
}

func newFake(t *testing.T, s scene) *fake {
	f := &fake{scene: s, cut: make(chan struct{})}
	m := http.NewServeMux()
	m.Handle("/", web.Handler())
	m.HandleFunc("GET /api/stream", f.stream)
	m.HandleFunc("GET /api/history", f.answer(func(r *http.Request, s scene) any { return s.history(r.URL.Query().Get("worker")) }))
	m.HandleFunc("GET /api/decisions", f.answer(func(_ *http.Request, s scene) any { return s.decisions() }))
	m.HandleFunc("GET /api/decisions/{id}", f.answer(func(r *http.Request, s scene) any { return s.decision(r.PathValue("id")) }))
	m.HandleFunc("GET /api/requests", f.answer(func(_ *http.Request, s scene) any { return s.ended() }))
	m.HandleFunc("GET /api/diagnosis", f.answer(func(_ *http.Request, s scene) any { return s.diagnosis() }))
	m.HandleFunc("POST /api/try/v1/", f.try)
	m.HandleFunc("GET /api/thresholds", f.answer(func(*http.Request, scene) any { return thresholds() }))
	m.HandleFunc("GET /api/config", f.answer(func(_ *http.Request, s scene) any { return s.config() }))
	m.HandleFunc("GET /api/config/changes", f.answer(func(_ *http.Request, s scene) any { return s.fileChanges() }))
	m.HandleFunc("GET /api/plugins", f.answer(func(*http.Request, scene) any { return obj{"plugins": []any{}} }))
	m.HandleFunc("GET /api/version", f.answer(func(*http.Request, scene) any { return obj{"schema": 1, "version": "v1", "door": "v1", "pid": 4711} }))
	m.HandleFunc("POST /api/", f.command)
	m.HandleFunc("DELETE /api/", f.command)
	f.Server = httptest.NewServer(m)
	t.Cleanup(func() { f.end(); f.Server.Close() })
	return f
}

// end cuts every stream.
func (f *fake) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.cut)
	f.cut = make(chan struct{})
}

func (f *fake) show(s scene) {
	f.mu.Lock()
	f.scene = s
	f.mu.Unlock()
	f.end()
}

func (f *fake) hush(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = on
}

func (f *fake) now() (scene, chan struct{}, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scene, f.cut, f.silent
}

func (f *fake) refused(w http.ResponseWriter, r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == "" || r.Header.Get("Authorization") == "Bearer "+f.token {
		return false
	}
	w.WriteHeader(http.StatusUnauthorized)
	_ = json.NewEncoder(w).Encode(obj{"error": obj{"message": "the admin API asks for admin.token as a bearer token", "code": 401}})
	return true
}

func (f *fake) answer(make func(*http.Request, scene) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if f.refused(w, r) {
			return
		}
		s, _, _ := f.now()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(make(r, s))
	}
}

// stream tells a scene, and then that it is still so.
func (f *fake) stream(w http.ResponseWriter, r *http.Request) {
	if f.refused(w, r) {
		return
	}
	s, cut, _ := f.now()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(m message) {
		data, err := json.Marshal(m.data)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", m.kind, data)
		w.(http.Flusher).Flush()
	}
	for _, m := range s.messages(r.URL.Query().Get("requests") != "", r.URL.Query().Get("log")) {
		send(m)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-cut:
			return
		case <-tick.C:
			if _, _, silent := f.now(); !silent {
				send(message{"change", obj{"at": at(0)}})
			}
		}
	}
}

// A picture of one dot, and the head of a sound without samples.
const (
	dot     = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
	silence = "RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x80>\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"
)

// deltas are the pieces of an answer: words, a call in pieces where tools are given and
// nothing was returned yet, Markdown where it is asked for.
func deltas(body string) []obj {
	switch {
	case strings.Contains(body, `"tools"`) && !strings.Contains(body, `"role":"tool"`):
		call := func(f obj) obj { return obj{"tool_calls": []obj{{"index": 0, "id": "call-1", "function": f}}} }
		return []obj{call(obj{"name": "weather" + evil}), call(obj{"arguments": `{"town":`}), call(obj{"arguments": `"Leipzig"}`})}
	case strings.Contains(body, "in Markdown"):
		return []obj{{"content": marked}}
	}
	return []obj{{"content": "a "}, {"content": "dot. "}, {"content": evil}}
}

// marked is an answer in Markdown, with markup that must stay text.
const marked = "# A title " + evil + "\n\nsome **strong " + evil + "** and *soft* words, `a_b_c` and [a link](javascript:document.title='owned'), ![a picture](https://elsewhere.example/x.png)\n" +
	"\n1. one\n   - within " + evil + "\n2. two\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n```html\n" + evil + "\n"

// try answers as the worker that is named would, and notes the body.
func (f *fake) try(w http.ResponseWriter, r *http.Request) {
	if f.refused(w, r) {
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/try/v1/")
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.commands = append(f.commands, path+" "+string(body))
	f.mu.Unlock()
	h := w.Header()
	h.Set("X-Roundhouse-Worker", cmp.Or(r.Header.Get("X-Roundhouse-Worker"), "generate/1"))
	h.Set("X-Request-Id", "try-1")
	h.Set("Content-Type", "application/json")
	answer := map[string]any{
		"images/generations":   obj{"created": 1, "data": []obj{{"b64_json": dot}, {"url": "https://elsewhere.example/" + evil}}},
		"audio/transcriptions": obj{"text": "The train departs. " + evil},
		"embeddings":           obj{"data": []obj{{"embedding": []float64{1, 0}}, {"embedding": []float64{0.8, 0.6}}, {"embedding": []float64{0, 1}}}, "usage": obj{"prompt_tokens": 12}},
		"rerank":               obj{"results": []obj{{"index": 1, "relevance_score": 0.92}, {"index": 0, "relevance_score": 0.41}, {"index": 2, "relevance_score": 0.03}}},
	}[path]
	switch path {
	case "chat/completions":
		h.Set("Content-Type", "text/event-stream")
		for _, delta := range deltas(string(body)) {
			piece, _ := json.Marshal(obj{"choices": []obj{{"delta": delta}}})
			fmt.Fprintf(w, "data: %s\n\n", piece)
		}
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
	case "audio/speech":
		h.Set("Content-Type", "audio/wav")
		_, _ = io.WriteString(w, silence)
	default:
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// command notes what is asked for, and answers as if it were so.
func (f *fake) command(w http.ResponseWriter, r *http.Request) {
	if f.refused(w, r) {
		return
	}
	body := make([]byte, 4096)
	n, _ := r.Body.Read(body)
	f.mu.Lock()
	f.commands = append(f.commands, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body[:n])))
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/rotate") && strings.Contains(string(body[:n]), "dry_run") {
		_ = json.NewEncoder(w).Encode(obj{"schema": 1, "dry_run": true, "turns": []obj{{"worker": "chat/1", "obstacle": "", "skipped": false}, {"worker": "chat/2", "obstacle": "chat/1 has its turn", "skipped": false}}})
		return
	}
	_ = json.NewEncoder(w).Encode(obj{})
}

// noted are the commands so far.
func (f *fake) noted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.commands)
}

func (f *fake) asked(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.commands, what)
}
