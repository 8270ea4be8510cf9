package balancer_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// studio is an engine of pictures, films and sound, as strangers write them.
type studio struct {
	*httptest.Server
	name string

	mu    sync.Mutex
	heads []http.Header
	gone  chan struct{} // closed when a client of /v1/audio/speech has left
	more  chan struct{} // lets the next piece of sound go
	live  int
	hold  chan struct{} // pictures wait for it; nil: they do not
}

func newStudio(t *testing.T, name string) *studio {
	s := &studio{name: name, gone: make(chan struct{}), more: make(chan struct{})}
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"object":"list","data":[{"id":"studio"}]}`)
	})
	m.HandleFunc("POST /v1/audio/speech", s.speech)
	m.HandleFunc("POST /v1/images/edits", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		fmt.Fprintf(w, `{"sum":"%x","n":%d,"err":"%v","type":%q}`, sum.Sum(nil), n, err, r.Header.Get("Content-Type"))
	})
	m.HandleFunc("POST /v1/images/generations", s.picture)
	m.HandleFunc("POST /v1/videos", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"video_%s","status":"queued"}`, s.name)
	})
	m.HandleFunc("/v1/videos/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":%q,"at":%q,"method":%q}`, r.PathValue("id"), s.name, r.Method)
	})
	m.HandleFunc("GET /v1/videos/{id}/content", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		w.Write(bytes.Repeat([]byte(s.name), 1<<20))
	})
	m.HandleFunc("POST /v1/moderations", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	m.HandleFunc("GET /v1/realtime", s.realtime)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if r.Method == "POST" {
			s.heads = append(s.heads, r.Header.Clone())
		}
		s.mu.Unlock()
		m.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *studio) speech(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "audio/wav")
	w.Header().Set("X-Secret-Of-The-Engine", "1")
	io.WriteString(w, "first")
	http.NewResponseController(w).Flush()
	select {
	case <-s.more:
		io.WriteString(w, " second")
	case <-r.Context().Done():
		close(s.gone)
	}
}

func (s *studio) picture(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if s.hold != nil {
		s.mu.Lock()
		s.live++
		s.mu.Unlock()
		<-s.hold
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"data":[]}`)
}

// realtime is an echo behind a websocket's handshake: what frames say is not the
// door's affair.
func (s *studio) realtime(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" || r.URL.Query().Get("model") != "studio" {
		http.Error(w, "no websocket", 400)
		return
	}
	c, b, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhello ")
	io.Copy(c, b)
}

// studioRig is a door in front of studios, with a pool of that task.
func studioRig(t *testing.T, task string, change func(*control.WorkerSet), studios ...*studio) *rig {
	t.Helper()
	pool := control.Pool{Name: "p", Policy: "least_inflight", Task: task}
	for _, s := range studios {
		pool.Workers = append(pool.Workers, control.Worker{Name: s.name, URL: s.URL, APIKey: "of-the-worker", Generation: 1, Kind: "vllm", State: "ready"})
	}
	r := &rig{t: t, set: control.WorkerSet{Schema: 1, Epoch: 1, Version: 1, Pools: []control.Pool{pool}}}
	r.set.Door.Retry = configs.Retry{Attempts: 2, Budget: 0.2}
	if change != nil {
		change(&r.set)
	}
	r.serve(func() {})
	r.until("the workers are there", func() bool {
		for _, w := range r.door.State().Workers {
			if !w.Reached {
				return false
			}
		}
		return true
	})
	return r
}

// TestPassThrough sends every kind of request that passes through.
func TestPassThrough(t *testing.T) {
	s := newStudio(t, "a")
	r := studioRig(t, "any", nil, s)
	resp, got := r.post("/v1/moderations", `{"input":"x","model":"studio"}`, "X-Secret", "of the client", "Authorization", "Bearer mine")
	if resp.StatusCode != 200 || got != `{"input":"x","model":"studio"}` || resp.Header.Get("x-roundhouse-worker") != "p/a" || resp.Header.Get("x-request-id") == "" {
		t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, got)
	}
	if h := s.heads[0]; h.Get("X-Secret") != "" || h.Get("Authorization") != "Bearer of-the-worker" || h.Get("User-Agent") != "" || h.Get("X-Request-Id") == "" {
		t.Fatalf("the worker got %v", h)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"GET", "/v1/images/generations", "", 405, "method_not_allowed"},
		{"POST", "/v1/images/generations", `{"model":"other"}`, 404, "model_not_found"},
		{"POST", "/v1/images/generations", `not JSON`, 400, "invalid_request"},
		{"POST", "/v1/images/destroy", `{}`, 404, "not_found"},
		{"GET", "/v1/videos/none", "", 404, "not_found"},
		{"GET", "/v1/realtime", "", 400, "invalid_request"},
	} {
		req, err := http.NewRequest(c.method, r.url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var e struct{ Error struct{ Code string } }
		json.NewDecoder(resp.Body).Decode(&e)
		resp.Body.Close()
		if resp.StatusCode != c.status || e.Error.Code != c.code {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, e.Error.Code)
		}
	}
	r.until("the request is counted, and none is in flight", func() bool {
		return strings.Contains(r.metrics(), `roundhouse_requests_total{code="200",model="studio",outcome="ok",pool="p",route="other"} 1`) && r.door.State().Streams == 0
	})
}

// TestPassTasks keeps paths from pools that have no task for them.
func TestPassTasks(t *testing.T) {
	s := newStudio(t, "a")
	r := studioRig(t, "image", nil, s)
	for path, want := range map[string]int{"/v1/images/generations": 200, "/v1/videos": 200, "/v1/audio/speech": 404, "/v1/moderations": 404} {
		if resp, got := r.post(path, `{"model":"studio"}`); resp.StatusCode != want {
			t.Errorf("%s: %d %s", path, resp.StatusCode, got)
		}
	}
}

// TestLongUpload streams a body that is longer than all memory for bodies, in a form
// whose model stands before its file.
func TestLongUpload(t *testing.T) {
	s := newStudio(t, "a")
	r := studioRig(t, "image", func(set *control.WorkerSet) {
		set.Door.Memory = 4 << 20
		set.Door.Limits.Body = 1 << 20
		set.Door.Limits.Upload = 64 << 20
	}, s)
	send := func(size int) (*http.Response, string, string) {
		body, w := io.Pipe()
		form := multipart.NewWriter(w)
		sum := sha256.New()
		go func() {
			form.WriteField("model", "studio")
			part, _ := form.CreateFormFile("image", "a.png")
			block := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
			for range size / len(block) {
				part.Write(block)
			}
			form.Close()
			w.Close()
		}()
		resp, err := r.client.Post(r.url+"/v1/images/edits", form.FormDataContentType(), io.TeeReader(body, sum))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(got), hex.EncodeToString(sum.Sum(nil))
	}
	resp, got, sum := send(32 << 20)
	if resp.StatusCode != 200 || !strings.Contains(got, sum) || !strings.Contains(got, "boundary=") {
		t.Fatalf("%d %s; sent %s", resp.StatusCode, got, sum)
	}
}

// TestLongUploadRefused holds what passes through to its own limit.
func TestLongUploadRefused(t *testing.T) {
	r := studioRig(t, "image", func(set *control.WorkerSet) { set.Door.Limits.Upload = 1 << 20 }, newStudio(t, "a"))
	resp, got := r.post("/v1/images/generations", `{"model":"studio","prompt":"`+strings.Repeat("x", 1<<20)+`"}`)
	if resp.StatusCode != 413 || !strings.Contains(got, "1MiB") {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
}

// TestSoundStreams gives each piece of an answer to the client as it comes, and tells
// the worker when the client leaves.
func TestSoundStreams(t *testing.T) {
	s := newStudio(t, "a")
	r := studioRig(t, "speech", nil, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	say := func() *http.Response {
		req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/audio/speech", strings.NewReader(`{"model":"studio","input":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 5)
		if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "first" || resp.Header.Get("Content-Type") != "audio/wav" || resp.Header.Get("X-Secret-Of-The-Engine") != "" {
			t.Fatalf("%q %v %v", first, err, resp.Header)
		}
		return resp
	}
	resp := say()
	close(s.more)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != " second" {
		t.Fatalf("%q %v", rest, err)
	}
	resp.Body.Close()
	s.more = make(chan struct{})
	resp = say()
	cancel()
	<-s.gone
	resp.Body.Close()
	r.until("the request has ended", func() bool { return r.door.State().Streams == 0 })
}

// TestJobsStick asks for a film where it is made, for its client alone.
func TestJobsStick(t *testing.T) {
	a, b := newStudio(t, "a"), newStudio(t, "b")
	sum := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	r := studioRig(t, "image", func(set *control.WorkerSet) {
		set.Door.Keys = []configs.Key{{Name: "one", SHA256: []string{sum("k1")}, Models: []string{"*"}}, {Name: "two", SHA256: []string{sum("k2")}, Models: []string{"*"}}}
	}, a, b)
	ask := func(method, path, key string) (int, string) {
		req, err := http.NewRequest(method, r.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(got)
	}
	if resp, _ := r.post("/v1/videos", `{"model":"studio"}`); resp.StatusCode != 401 {
		t.Fatalf("without a key: %d", resp.StatusCode)
	}
	made := map[string]bool{}
	for range 4 {
		resp, got := r.post("/v1/videos", `{"model":"studio"}`, "Authorization", "Bearer k1")
		var job struct{ ID string }
		if err := json.Unmarshal([]byte(got), &job); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, got)
		}
		made[job.ID] = true
	}
	if len(made) != 2 {
		t.Fatalf("all films are made at one worker: %v", made)
	}
	for id := range made {
		at := strings.TrimPrefix(id, "video_")
		if status, got := ask("GET", "/v1/videos/"+id, "k1"); status != 200 || !strings.Contains(got, `"at":"`+at+`"`) {
			t.Errorf("%s: %d %s", id, status, got)
		}
		if status, got := ask("GET", "/v1/videos/"+id+"/content", "k1"); status != 200 || len(got) != 1<<20 || got[:1] != at {
			t.Errorf("%s: %d, %d bytes", id, status, len(got))
		}
		if status, _ := ask("GET", "/v1/videos/"+id, "k2"); status != 404 {
			t.Errorf("another key's film: %d", status)
		}
		if status, got := ask("DELETE", "/v1/videos/"+id, "k1"); status != 200 || !strings.Contains(got, "DELETE") {
			t.Errorf("%s: %d %s", id, status, got)
		}
	}
}

// TestRealtime passes a websocket through, both ways.
func TestRealtime(t *testing.T) {
	r := studioRig(t, "transcribe", nil, newStudio(t, "a"))
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The line comes in pieces, which a client's segments may be.
	for _, piece := range []string{"GET /v1/re", "altime?model=studio HT", "TP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: y\r\nSec-WebSocket-Version: 13\r\n\r\n"} {
		io.WriteString(c, piece)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Sec-Websocket-Accept") != "x" {
		t.Fatalf("%v %v", resp, err)
	}
	for _, say := range []string{"one", "two"} {
		io.WriteString(c, say)
		want := say
		if say == "one" {
			want = "hello one"
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != want {
			t.Fatalf("%q %v", got, err)
		}
	}
	if n := r.door.State().Streams; n != 1 {
		t.Errorf("%d requests in flight while the socket is open", n)
	}
	c.Close()
	r.until("the socket has ended", func() bool { return r.door.State().Streams == 0 })
}

// TestPassAfterOthers serves a request that passes through on a connection that has
// served others, and one whose first worker is dead.
func TestPassAfterOthers(t *testing.T) {
	a, b := newStudio(t, "a"), newStudio(t, "b")
	r := studioRig(t, "image", nil, a, b)
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	io.WriteString(c, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	body := `{"model":"studio","n":2}`
	fmt.Fprintf(c, "POST /v1/images/generations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if resp, err = http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 || !resp.Close {
		t.Fatalf("%v %v", resp, err)
	}
	b.Close()
	for range 4 {
		if resp, got := r.post("/v1/images/generations", body); resp.StatusCode != 200 || resp.Header.Get("x-roundhouse-worker") != "p/a" && resp.Header.Get("x-roundhouse-worker") != "p/b" {
			t.Fatalf("%d %s", resp.StatusCode, got)
		}
	}
}

// TestPassByWeight gives a worker with eight pictures under way nothing while others
// have fewer.
func TestPassByWeight(t *testing.T) {
	a, b := newStudio(t, "a"), newStudio(t, "b")
	a.hold, b.hold = make(chan struct{}), make(chan struct{})
	r := studioRig(t, "image", nil, a, b)
	var wg sync.WaitGroup
	live := func() (int, int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		b.mu.Lock()
		defer b.mu.Unlock()
		return a.live, b.live
	}
	ask := func(n, until int) {
		wg.Go(func() {
			resp, err := http.Post(r.url+"/v1/images/generations", "application/json", strings.NewReader(fmt.Sprintf(`{"model":"studio","n":%d}`, n)))
			if err == nil {
				resp.Body.Close()
			}
		})
		r.until("the picture is begun", func() bool { x, y := live(); return x+y == until })
	}
	ask(8, 1)
	for i := range 5 {
		ask(1, 2+i)
	}
	x, y := live()
	close(a.hold)
	close(b.hold)
	wg.Wait()
	if min(x, y) != 1 || max(x, y) != 5 {
		t.Errorf("%d and %d pictures' requests: want 1 (of eight pictures) and 5", x, y)
	}
}
