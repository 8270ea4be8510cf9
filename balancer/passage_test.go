package balancer_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// longAnswer writes n bytes of an answer that tells its usage at the end.
func longAnswer(w http.ResponseWriter, n int, chunked bool) {
	const front, end = `{"model":"sim","data":"`, `","usage":{"prompt_tokens":11,"total_tokens":11}}`
	w.Header().Set("Content-Type", "application/json")
	if !chunked {
		w.Header().Set("Content-Length", strconv.Itoa(n))
	}
	io.WriteString(w, front)
	piece := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for left := n - len(front) - len(end); left > 0; left -= len(piece) {
		w.Write(piece[:min(left, len(piece))])
	}
	io.WriteString(w, end)
}

const embedBody = `{"model":"sim","input":"x"}`

// TestLongAnswersPass has answers pass that are longer than the door holds, or than all of
// its memory: framed either way, read by the door or by fasthttp, to a client of HTTP/1.0,
// and in place of a stream. The connection goes on, and what they took is counted.
func TestLongAnswersPass(t *testing.T) {
	const n = 17 << 20
	for _, c := range []struct {
		name, path, head, body string
		chunked                bool
		memory                 configs.Size
		origins                []string
	}{
		{name: "of a known length", path: "/v1/embeddings"},
		{name: "in chunks", path: "/v1/embeddings", chunked: true},
		{name: "longer than the memory", path: "/v1/embeddings", memory: 1 << 20},
		{name: "in chunks, longer than the memory", path: "/v1/embeddings", chunked: true, memory: 1 << 20},
		{name: "through fasthttp", path: "/v1/embeddings", head: "X-Request-Id: a\r\nX-Request-Id: b\r\n"},
		{name: "through fasthttp, in chunks, for a page", path: "/v1/embeddings", head: "Origin: http://page\r\n", chunked: true, origins: []string{"*"}},
		{name: "in place of a stream", path: "/v1/chat/completions", body: strings.Replace(okBody, "{", `{"stream":true,`, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := stubRig(t, func(s *control.WorkerSet) { s.Door.Memory, s.Door.CORS.Origins = c.memory, c.origins },
				func(w http.ResponseWriter, _ *http.Request) { longAnswer(w, n, c.chunked) })
			if c.body == "" {
				c.body = embedBody
			}
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for range 2 { // the second shows that the connection goes on, and that no memory is held
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", c.path, c.head, len(c.body), c.body)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != 200 || len(got) != n || !bytes.HasSuffix(got, []byte(`"total_tokens":11}}`)) || resp.Header.Get("x-roundhouse-worker") != "p/1" {
					t.Fatalf("got %d, %d bytes, %v", resp.StatusCode, len(got), err)
				}
				if origin := resp.Header.Get("access-control-allow-origin"); (origin == "*") != (c.origins != nil) {
					t.Errorf("the page is told %q", origin)
				}
			}
			r.until("the prompts of both are counted", func() bool {
				return strings.Contains(r.metrics(), `roundhouse_tokens_total{kind="prompt",model="sim",pool="p",route="other"} 22`)
			})
		})
	}
	t.Run("to HTTP/1.0", func(t *testing.T) {
		r := stubRig(t, nil, func(w http.ResponseWriter, _ *http.Request) { longAnswer(w, n, true) })
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/embeddings HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(embedBody), embedBody)
		whole, err := io.ReadAll(conn)
		if _, body, _ := bytes.Cut(whole, []byte("\r\n\r\n")); err != nil || len(body) != n || bytes.Contains(whole[:len(whole)-len(body)], []byte("chunked")) {
			t.Errorf("got %d bytes, %v, behind %q", len(body), err, whole[:min(len(whole), 300)])
		}
	})
}

// TestLongAnswerBreaks: a worker dies while its answer is passed on. The client cannot
// take what it has for whole, and one that the door could hold is asked for elsewhere.
func TestLongAnswerBreaks(t *testing.T) {
	dies := func(n, after int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(n))
			w.Write(bytes.Repeat([]byte("x"), after))
			panic(http.ErrAbortHandler)
		}
	}
	r := stubRig(t, nil, dies(20<<20, 18<<20))
	resp, err := r.client.Post(r.url+"/v1/embeddings", "application/json", strings.NewReader(embedBody))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("half an answer is taken for whole")
	}
	resp.Body.Close()
	var died atomic.Bool
	once := func(w http.ResponseWriter, req *http.Request) {
		if died.CompareAndSwap(false, true) {
			dies(8<<20, 7<<20)(w, req)
		}
		longAnswer(w, 8<<20, false)
	}
	two := stubRig(t, nil, once, once)
	if resp, got := two.post("/v1/embeddings", embedBody); resp.StatusCode != 200 || len(got) != 8<<20 {
		t.Errorf("got %d with %d bytes", resp.StatusCode, len(got))
	}
}

// TestRewrittenAnswerIsHeld: an answer that is rewritten must be held whole, and is
// refused by the knob's name if it does not fit.
func TestRewrittenAnswerIsHeld(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		n := 20 << 20
		r := stubRig(t, func(s *control.WorkerSet) {
			s.Door.Memory = 64 << 20
			s.Routes = []configs.Route{{Name: "mine", KeepName: true, Targets: []configs.Target{{Model: "sim", Weight: 1}}}}
		}, func(w http.ResponseWriter, _ *http.Request) { longAnswer(w, n, chunked) })
		body := strings.Replace(embedBody, "sim", "mine", 1)
		if resp, got := r.post("/v1/embeddings", body); resp.StatusCode != 200 || len(got) != n+1 || !strings.HasPrefix(got, `{"model":"mine"`) {
			t.Errorf("got %d with %d bytes: %.60s", resp.StatusCode, len(got), got)
		}
		n = 100 << 20
		if resp, got := r.post("/v1/embeddings", body); resp.StatusCode != 502 && resp.StatusCode != 503 || !strings.Contains(got, "door.memory") {
			t.Errorf("got %d %.200s", resp.StatusCode, got)
		}
		n = 20 << 20 // and nothing of it is held any more
		if resp, got := r.post("/v1/embeddings", body); resp.StatusCode != 200 || len(got) != n+1 {
			t.Errorf("then %d with %d bytes", resp.StatusCode, len(got))
		}
	}
}

// Every answer tells when it was made, once, as HTTP has it for servers with a clock.
func TestAnswersAreDated(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 3})}, nil)
	chat := func(more string) string {
		body := `{"model":"sim","max_tokens":3,"messages":[{"role":"user","content":"a"}]` + more + `}`
		return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for name, c := range map[string]struct {
		ask    string
		status int
	}{
		"whole":            {chat(""), 200},
		"stream":           {chat(`,"stream":true`), 200},
		"by fasthttp":      {"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", 200},
		"refused":          {chat(`,"stream":3`), 400},
		"refused at once":  {"POST /v1/chat/completions HTTP/1.1\r\n\r\n", 400},
		"no such path":     {"GET /none HTTP/1.1\r\nHost: a\r\n\r\n", 404},
		"no such method":   {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
		"by a whole URL":   {strings.Replace(chat(""), " /v1", " http://b/v1", 1), 200},
		"streamed by URL":  {strings.Replace(chat(`,"stream":true`), " /v1", " http://b:80/v1", 1), 200},
		"another's method": {"PUT /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", 405},
	} {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, c.ask)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		dates := resp.Header.Values("Date")
		if len(dates) != 1 || resp.StatusCode != c.status {
			t.Errorf("%s: %d, dates %q; want %d and one", name, resp.StatusCode, dates, c.status)
		} else if at, err := http.ParseTime(dates[0]); err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("%s: date %q, %v", name, dates[0], err)
		}
		_ = conn.Close()
	}
}
