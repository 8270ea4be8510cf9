package balancer_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// counted is a worker that knows over how many connections requests came.
type counted struct {
	*httptest.Server
	mu    sync.Mutex
	conns map[string]bool
	gate  sync.WaitGroup // done: requests are answered
	live  atomic.Int64
}

func newCounted(t *testing.T) *counted {
	c := &counted{conns: map[string]bool{}}
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"sim","max_model_len":8192}]}`)
	})
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "vllm:kv_cache_usage_perc 0\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"6250\"} 1\n")
	})
	m.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.conns[r.RemoteAddr] = true
		c.mu.Unlock()
		c.live.Add(1)
		defer c.live.Add(-1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c.gate.Wait()
		if strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"id": "1", "choices": []any{map[string]any{"index": 0, "message": map[string]string{"content": "hi"}, "finish_reason": "stop"}}})
	})
	c.Server = httptest.NewServer(m)
	t.Cleanup(c.Close)
	return c
}

func (c *counted) opened() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// TestIdleConnectionsMove replaces a door by another process while clients with
// kept connections load it: they, and clients that are silent all the while, go
// on over the connections that they have, and so do the doors to their worker.
func TestIdleConnectionsMove(t *testing.T) {
	const loading, silent = 12, 20
	w := newCounted(t)
	set := control.WorkerSet{Schema: 1, Holder: "test", Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Models: []string{"sim"},
		Workers: []control.Worker{{Name: "1", URL: w.URL, Kind: "vllm", State: "ready", Generation: 1}}}}}
	// Who has sent nothing yet is let go after that, however slow the machine is.
	set.Door.Limits.HeaderRead = configs.Duration(time.Hour)
	set.Door.Keys = []configs.Key{{Name: "load", SHA256: []string{hashOf("load")}, Models: []string{"*"}}}
	ds := newDoors(t)
	ds.start("door-1")
	ds.must("door-1", "PUT", "/worker-set", set, nil)
	ds.reach("door-1")

	quiet := make([]*raw, silent)
	for i := range quiet {
		quiet[i] = dialRaw(t, ds.url)
		if i%4 > 0 { // some have sent nothing yet, and some were served by fasthttp
			quiet[i].ask(t, i%2 == 0, false)
		}
	}
	var over atomic.Bool
	var served atomic.Int64
	var clients sync.WaitGroup
	defer func() { over.Store(true); clients.Wait() }()
	w.gate.Add(1) // all at once, so that there are as many connections as there will ever be need for
	for i := range loading {
		clients.Go(func() {
			c := dialRaw(t, ds.url)
			for !over.Load() && c.ask(t, i%3 > 0, i%2 == 0) {
				served.Add(1)
			}
		})
	}
	(&rig{t: t}).until("all are served at once", func() bool { return w.live.Load() == loading })
	w.gate.Done()
	for i := range 2 {
		old, next := fmt.Sprint("door-", i+1), fmt.Sprint("door-", i+2)
		target := served.Load() + 100
		(&rig{t: t}).until("a hundred more are served", func() bool { return served.Load() > target || t.Failed() })
		ds.start(next)
		ds.must(next, "PUT", "/worker-set", set, nil)
		ds.reach(next)
		ds.leave(old)
	}
	over.Store(true)
	clients.Wait()
	for i, c := range quiet {
		c.ask(t, i%2 == 0, false)
	}
	// A door keeps those that it may need until it ends: how many is a guess where
	// requests begin and end meanwhile. Did none move, each door would make its own.
	if n := w.opened(); n >= 3*loading {
		t.Errorf("the doors made %d connections to the worker for %d requests at once", n, loading)
	}
}

// TestIdleConnectionsStay hands a door over to one that has room for few: who
// cannot move is served once more where it is, and told to come again.
func TestIdleConnectionsStay(t *testing.T) {
	w := newCounted(t)
	set := control.WorkerSet{Schema: 1, Holder: "test", Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Models: []string{"sim"},
		Workers: []control.Worker{{Name: "1", URL: w.URL, Kind: "vllm", State: "ready", Generation: 1}}}}}
	ds := newDoors(t)
	ds.start("door-1")
	ds.must("door-1", "PUT", "/worker-set", set, nil)
	ds.reach("door-1")
	clients := make([]*raw, 8)
	for i := range clients {
		clients[i] = dialRaw(t, ds.url)
		clients[i].ask(t, true, false)
	}
	set.Door.Limits.Connections = 3
	ds.start("door-2")
	ds.must("door-2", "PUT", "/worker-set", set, nil)
	ds.reach("door-2")
	ds.must("door-1", "POST", "/shutdown", nil, nil)
	(&rig{t: t}).until("the old door gives up moving", func() bool {
		text, err := os.ReadFile(filepath.Join(ds.dir, "door-1.log"))
		return err == nil && strings.Contains(string(text), "takes no more idle connections")
	})
	stayed := 0
	for _, c := range clients {
		status, closes := c.once(t)
		if status != 200 {
			t.Errorf("a client got %d", status)
		}
		if closes {
			stayed++
		}
	}
	if stayed != len(clients)-3 {
		t.Errorf("%d of %d clients stayed; want all but 3", stayed, len(clients))
	}
	if err := ds.running["door-1"].Wait(); err != nil {
		t.Error(err)
	}
	delete(ds.running, "door-1")
}

// raw is a client's connection under the test's eyes.
type raw struct {
	net.Conn
	in *bufio.Reader
}

func dialRaw(t *testing.T, url string) *raw {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &raw{c, bufio.NewReader(c)}
}

// once sends one plain request and returns its status, and whether the
// connection ends with it.
func (c *raw) once(t *testing.T) (status int, closes bool) {
	t.Helper()
	body := fmt.Sprintf(chatBody, false, "")
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Errorf("a client got %v", err)
		return 0, true
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Close
}

// ask sends one request, which fasthttp reads where it is not plain, and reports
// whether its answer came over this connection, which stays open.
func (c *raw) ask(t *testing.T, plain, stream bool) bool {
	t.Helper()
	more := ""
	if !plain {
		more = "Connection: Keep-Alive\r\n"
	}
	body := fmt.Sprintf(chatBody, stream, "")
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n%sAuthorization: Bearer load\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", more, len(body), body)
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Errorf("a client with a kept connection got %v", err)
		return false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || resp.Close || !strings.Contains(string(b), "hi") {
		t.Errorf("a client with a kept connection got %d %v %s %v", resp.StatusCode, resp.Header, b, err)
		return false
	}
	return true
}
