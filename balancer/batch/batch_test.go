package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime/multipart"

	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var few = Limits{Lines: 3, Most: 100, File: 1 << 20, Storage: 4 << 20, Keep: 90 * time.Minute, Window: 2 * time.Hour}

// house is a folder with a service that runs, and what its lines are answered.
type house struct {
	t      *testing.T
	dir    string
	limits Limits
	s      *Service
	stop   func()

	mu     sync.Mutex
	asked  map[string]int // by body
	answer func(ctx context.Context, key, path string, body []byte) (Answer, error)
}

func newHouse(t *testing.T, limits Limits) *house {
	h := &house{t: t, dir: t.TempDir(), limits: limits, asked: map[string]int{}}
	h.answer = func(_ context.Context, key, _ string, body []byte) (Answer, error) {
		return Answer{Status: 200, RequestID: "r", Body: fmt.Appendf(nil, `{"said":%s,"key":%q}`, body, key)}, nil
	}
	h.open()
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *house) open() {
	send := func(ctx context.Context, key, path string, body []byte) (Answer, error) {
		h.mu.Lock()
		h.asked[string(body)]++
		answer := h.answer
		h.mu.Unlock()
		return answer(ctx, key, path, body)
	}
	var err error
	if h.s, err = Open(h.dir, h.limits, send, slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s := h.s
	go func() { s.Run(ctx); close(done) }()
	h.stop = sync.OnceFunc(func() { cancel(); <-done; s.Close() })
}

// ask sends one request of the API.
func (h *house) ask(owner, method, path, ctype string, body io.Reader) (int, map[string]any) {
	h.t.Helper()
	r := httptest.NewRequest(method, path, body)
	if ctype != "" {
		r.Header.Set("Content-Type", ctype)
	}
	w := httptest.NewRecorder()
	h.s.ServeHTTP(w, r, Caller{Owner: owner, Key: "key of " + owner})
	m := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		m["text"] = w.Body.String()
	}
	return w.Code, m
}

func (h *house) upload(owner, content string, fields ...string) (int, map[string]any) {
	h.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		form.WriteField(fields[i], fields[i+1])
	}
	if content != "" {
		part, _ := form.CreateFormFile("file", "in.jsonl")
		io.WriteString(part, content)
	}
	form.Close()
	return h.ask(owner, "POST", "/v1/files", form.FormDataContentType(), &b)
}

// start uploads lines and begins their batch.
func (h *house) start(owner string, lines []string) string {
	h.t.Helper()
	status, f := h.upload(owner, strings.Join(lines, "\n"), "purpose", "batch")
	if status != 200 {
		h.t.Fatalf("upload: %d %v", status, f)
	}
	status, b := h.ask(owner, "POST", "/v1/batches", "application/json",
		strings.NewReader(fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"1h","metadata":{"a":"b"}}`, f["id"])))
	if status != 200 || b["status"] != "validating" {
		h.t.Fatalf("create: %d %v", status, b)
	}
	return b["id"].(string)
}

func (h *house) batch(owner, id string) map[string]any {
	h.t.Helper()
	status, b := h.ask(owner, "GET", "/v1/batches/"+id, "", nil)
	if status != 200 {
		h.t.Fatalf("%d %v", status, b)
	}
	return b
}

// content reads a file's lines by their custom id.
func (h *house) content(owner string, id any) map[string]result {
	h.t.Helper()
	if id == nil {
		return nil
	}
	r := httptest.NewRequest("GET", "/v1/files/"+id.(string)+"/content", nil)
	w := httptest.NewRecorder()
	h.s.ServeHTTP(w, r, Caller{Owner: owner})
	if w.Code != 200 {
		h.t.Fatalf("%d %s", w.Code, w.Body)
	}
	out := map[string]result{}
	for line := range strings.Lines(w.Body.String()) {
		var v result
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			h.t.Fatalf("%v: %s", err, line)
		}
		if _, twice := out[v.CustomID]; twice {
			h.t.Errorf("%s is answered twice", v.CustomID)
		}
		out[v.CustomID] = v
	}
	return out
}

func line(id, body string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":%s}`, id, body)
}

func lines(n int) []string {
	var out []string
	for i := range n {
		out = append(out, line(fmt.Sprint("q", i), fmt.Sprintf(`{"n":%d}`, i)))
	}
	return out
}

// TestBatch runs lines that succeed, fail, and are refused for a while.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, few)
		good := h.answer
		var busy sync.Map
		h.answer = func(ctx context.Context, key, path string, body []byte) (Answer, error) {
			switch {
			case string(body) == `{"n":1}`:
				return Answer{Status: 400, Body: []byte(`{"error":{}}`)}, nil
			case string(body) == `{"n":2}`:
				return Answer{Status: 200, Body: []byte("not JSON")}, nil
			}
			if _, was := busy.LoadOrStore(string(body), true); !was {
				if string(body) == `{"n":3}` {
					return Answer{}, errors.New("the connection broke")
				}
				return Answer{Status: 429, RetryAfter: 7 * time.Second}, nil
			}
			return good(ctx, key, path, body)
		}
		in := append(lines(8), "", line("s", `{"stream":true,"stream_options":{"include_usage":true},"n":8}`))
		id := h.start("me", in)
		time.Sleep(2 * time.Minute)
		b := h.batch("me", id)
		if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != "map[completed:8 failed:1 total:9]" || fmt.Sprint(b["metadata"]) != "map[a:b]" || b["completed_at"] == nil || b["object"] != "batch" {
			t.Fatalf("%v", b)
		}
		out, bad := h.content("me", b["output_file_id"]), h.content("me", b["error_file_id"])
		if len(out) != 8 || len(bad) != 1 || bad["q1"].Response.StatusCode != 400 || string(out["q2"].Response.Body) != `"not JSON"` {
			t.Errorf("%v\n%v", out, bad)
		}
		if string(out["q7"].Response.Body) != `{"said":{"n":7},"key":"key of me"}` || out["q7"].Response.RequestID != "r" || out["q7"].ID == "" {
			t.Errorf("%+v", out["q7"].Response)
		}
		if string(out["s"].Response.Body) != `{"said":{"n":8},"key":"key of me"}` {
			t.Errorf("%s", out["s"].Response.Body)
		}
	})
}

// TestBatchOnlySoMany sends no more lines at once than it may.
func TestBatchOnlySoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, few)
		var mu sync.Mutex
		live, most := 0, 0
		good := h.answer
		h.answer = func(ctx context.Context, key, path string, body []byte) (Answer, error) {
			mu.Lock()
			live++
			most = max(most, live)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			live--
			mu.Unlock()
			return good(ctx, key, path, body)
		}
		a, b := h.start("a", lines(20)), h.start("b", lines(20))
		time.Sleep(5 * time.Second)
		x, y := h.batch("a", a), h.batch("b", b)
		for _, v := range []map[string]any{x, y} {
			if n := v["request_counts"].(map[string]any)["completed"].(float64); v["status"] != "in_progress" || n < 2 {
				t.Errorf("after five seconds: %v", v) // both have their share
			}
		}
		time.Sleep(time.Minute)
		if most != few.Lines || h.batch("a", a)["status"] != "completed" || h.batch("b", b)["status"] != "completed" {
			t.Errorf("%d lines at once, want %d", most, few.Lines)
		}
	})
}

// TestBatchGoesOn ends the program at every line, with half a line written, and finds
// every line answered once.
func TestBatchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, few)
		good := h.answer
		slow := func(ctx context.Context, key, path string, body []byte) (Answer, error) {
			time.Sleep(time.Second)
			return good(ctx, key, path, body)
		}
		h.answer = slow
		id := h.start("me", lines(60))
		for range 6 {
			time.Sleep(1500 * time.Millisecond)
			h.stop() // what is under way is answered
			var b storedBatch
			if err := read(filepath.Join(h.dir, "batches", id+".json"), &b); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(filepath.Join(h.dir, "files", b.Output+".data"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(f, `{"custom_id":"torn`)
			f.Close()
			h.open()
		}
		time.Sleep(time.Minute)
		b := h.batch("me", id)
		if out := h.content("me", b["output_file_id"]); b["status"] != "completed" || len(out) != 60 {
			t.Fatalf("%d lines: %v", len(out), b)
		}
		for body, n := range h.asked {
			if n != 1 {
				t.Errorf("%s was sent %d times", body, n)
			}
		}
	})
}

// TestBatchCancel and its end by time leave what was answered.
func TestBatchCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, few)
		good := h.answer
		h.answer = func(ctx context.Context, key, path string, body []byte) (Answer, error) {
			if len(body) == len(`{"n":10}`) { // the later ones never end
				<-ctx.Done()
				return Answer{}, ctx.Err()
			}
			time.Sleep(time.Second)
			return good(ctx, key, path, body)
		}
		id := h.start("me", lines(9))
		time.Sleep(1500 * time.Millisecond)
		if status, b := h.ask("me", "POST", "/v1/batches/"+id+"/cancel", "", nil); status != 200 || b["status"] != "cancelling" {
			t.Fatalf("%d %v", status, b)
		}
		time.Sleep(time.Minute)
		b := h.batch("me", id)
		if n := len(h.content("me", b["output_file_id"])); b["status"] != "cancelled" || n < 3 || n > 6 {
			t.Errorf("%d lines: %v", n, b)
		}
		if status, _ := h.ask("me", "POST", "/v1/batches/"+id+"/cancel", "", nil); status != 409 {
			t.Errorf("cancelled twice: %d", status)
		}
		id = h.start("me", lines(20))
		time.Sleep(time.Hour)
		b = h.batch("me", id)
		out, bad := h.content("me", b["output_file_id"]), h.content("me", b["error_file_id"])
		if b["status"] != "expired" || len(out) != 10 || len(bad) != 10 || bad["q15"].Error.Code != "batch_expired" {
			t.Errorf("%d and %d lines: %v", len(out), len(bad), b)
		}
		time.Sleep(few.Keep)
		if status, l := h.ask("me", "GET", "/v1/files", "", nil); status != 200 || len(l["data"].([]any)) != 0 {
			t.Errorf("files that have expired: %v", l)
		}
		time.Sleep(time.Hour)
		if left, _ := filepath.Glob(filepath.Join(h.dir, "*", "*")); len(left) != 0 {
			t.Errorf("what has expired is still there: %v", left)
		}
	})
}

// TestBatchRefuses tells every fault of an input at once, and of requests what is wrong.
func TestBatchRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, few)
		id := h.start("me", []string{line("a", `{}`), "{", line("a", `{}`), line("b", `3`), strings.Replace(line("c", `{}`), "chat/", "", 1), strings.Replace(line("d", `{}`), "POST", "GET", 1), line("", `{}`)})
		time.Sleep(time.Minute)
		b := h.batch("me", id)
		var codes []string
		for _, f := range b["errors"].(map[string]any)["data"].([]any) {
			codes = append(codes, fmt.Sprint(f.(map[string]any)["line"], f.(map[string]any)["code"]))
		}
		want := "2invalid_json_line 3duplicate_custom_id 4missing_required_parameter 5mismatched_endpoint 6invalid_method 7missing_required_parameter"
		if b["status"] != "failed" || strings.Join(codes, " ") != want || len(h.asked) != 0 {
			t.Errorf("%v", b)
		}
		for _, many := range [][]string{lines(101), {"", " "}} {
			id := h.start("me", many)
			time.Sleep(time.Minute)
			if b := h.batch("me", id); b["status"] != "failed" {
				t.Errorf("%d lines: %v", len(many), b)
			}
		}
		for what, status := range map[string]int{
			`{`: 400, `{"input_file_id":"file-none","endpoint":"/v1/chat/completions","completion_window":"24h"}`: 400,
			`{"endpoint":"/v1/shutdown","completion_window":"24h"}`: 400, `{"endpoint":"/v1/completions","completion_window":"year"}`: 400,
			`{"endpoint":"/v1/completions","completion_window":"49h"}`: 400,
		} {
			if got, m := h.ask("me", "POST", "/v1/batches", "application/json", strings.NewReader(what)); got != status {
				t.Errorf("%s: %d %v", what, got, m)
			}
		}
		for _, fields := range [][]string{{"purpose", "assistants"}, {}, {"purpose", "batch", "expires_after[seconds]", "1"}} {
			if status, m := h.upload("me", "x", fields...); status != 400 {
				t.Errorf("%v: %d %v", fields, status, m)
			}
		}
		if status, _ := h.upload("me", ""); status != 400 {
			t.Errorf("no file: %d", status)
		}
		if status, m := h.upload("me", strings.Repeat("x", 1<<20+1), "purpose", "batch"); status != 413 {
			t.Errorf("too long: %d %v", status, m)
		}
		for _, path := range []string{"/v1/files/..%2f..%2fetc", "/v1/files/x/y", "/v1/batches/x", "/v1/files/file-none"} {
			if status, m := h.ask("me", "GET", path, "", nil); status != 404 {
				t.Errorf("%s: %d %v", path, status, m)
			}
		}
	})
}

// TestOwners shows nobody what is another's.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, few)
		id := h.start("me", lines(3))
		time.Sleep(time.Minute)
		mine := h.batch("me", id)
		for _, r := range []string{"GET /v1/batches/" + id, "POST /v1/batches/" + id + "/cancel", "GET /v1/files/" + mine["output_file_id"].(string), "GET /v1/files/" + mine["output_file_id"].(string) + "/content",
			"DELETE /v1/files/" + mine["input_file_id"].(string)} {
			method, path, _ := strings.Cut(r, " ")
			if status, m := h.ask("you", method, path, "", nil); status != 404 {
				t.Errorf("%s: %d %v", r, status, m)
			}
		}
		for path, n := range map[string]int{"/v1/files": 2, "/v1/files?purpose=batch": 1, "/v1/files?limit=1": 1, "/v1/batches": 1} {
			_, yours := h.ask("you", "GET", path, "", nil)
			_, list := h.ask("me", "GET", path, "", nil)
			if len(yours["data"].([]any)) != 0 || len(list["data"].([]any)) != n || list["has_more"] != (path == "/v1/files?limit=1") {
				t.Errorf("%s: %v and %v", path, yours, list)
			}
		}
		if status, m := h.ask("me", "DELETE", "/v1/files/"+mine["input_file_id"].(string), "", nil); status != 200 || m["deleted"] != true {
			t.Errorf("%d %v", status, m)
		}
		if status, _ := h.ask("me", "GET", "/v1/files/"+mine["input_file_id"].(string), "", nil); status != 404 {
			t.Errorf("a deleted file: %d", status)
		}
	})
}

// TestOneRunner sends no line twice where two programs have one folder, and the second
// goes on when the first is gone.
func TestOneRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, few)
		good := h.answer
		h.answer = func(ctx context.Context, key, path string, body []byte) (Answer, error) {
			time.Sleep(time.Second)
			return good(ctx, key, path, body)
		}
		id := h.start("me", lines(20))
		first := h.stop
		h.open()
		time.Sleep(3500 * time.Millisecond)
		first()
		time.Sleep(time.Minute)
		if b := h.batch("me", id); b["status"] != "completed" || len(h.content("me", b["output_file_id"])) != 20 {
			t.Errorf("%v", b)
		}
		for n := range maps.Values(h.asked) {
			if n != 1 {
				t.Errorf("a line was sent %d times", n)
			}
		}
	})
}
