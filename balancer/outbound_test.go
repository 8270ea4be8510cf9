package balancer_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestOutboundHeaders sends fields of all kinds: the worker gets those that the
// door writes itself, and no other.
func TestOutboundHeaders(t *testing.T) {
	for _, through := range []bool{false, true} {
		viaFasthttp = through
		w := sim.New(sim.Options{Words: 1})
		r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) { s.Pools[0].Workers[0].APIKey = "of-the-worker" })
		viaFasthttp = false
		resp, got := r.post("/v1/chat/completions", okBody,
			"Authorization", "Bearer of-the-client", "Cookie", "a=b", "X-Forwarded-For", "1.2.3.4", "X-Real-Ip", "1.2.3.4", "Forwarded", "for=1.2.3.4",
			"X-Api-Key", "x", "Proxy-Authorization", "x", "X-Secret", "y", "X-Roundhouse-Door", "another", "X-Roundhouse-Seq", "7", "X-Roundhouse-Waited", "99999", "Connection", "keep-alive, x-secret",
			"X-Request-Id", "mine-1", "Accept", "application/json", "User-Agent", "curl")
		if resp.StatusCode != 200 {
			t.Fatalf("got %d %s", resp.StatusCode, got)
		}
		head := w.Heads()[0]
		var names []string
		for name := range head {
			names = append(names, name)
		}
		slices.Sort(names)
		if want := []string{"Accept", "Authorization", "Content-Length", "Content-Type", "X-Request-Id"}; !slices.Equal(names, want) {
			t.Errorf("through fasthttp %v: the worker got %v; want %v", through, names, want)
		}
		if head.Get("Authorization") != "Bearer of-the-worker" || head.Get("X-Request-Id") != "mine-1" {
			t.Errorf("the worker got %v", head)
		}
	}
}

// TestForms passes a multipart body on byte by byte.
func TestForms(t *testing.T) {
	got := make(chan string, 1)
	r := stubRig(t, nil, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- r.URL.Path + "\n" + r.Header.Get("Content-Type") + "\n" + string(b)
		io.WriteString(w, `{"text":"said"}`)
	})
	const ctype = "multipart/form-data; boundary=xyz"
	body := "--xyz\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsim\r\n--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n" +
		"RIFF\x00\x01\xff\r\n--xy" + strings.Repeat("\x80", 70_000) + "\r\n--xyz--\r\n"
	resp, answer := r.post("/v1/audio/transcriptions", body, "Content-Type", ctype)
	if resp.StatusCode != 200 || answer != `{"text":"said"}` {
		t.Fatalf("got %d %s", resp.StatusCode, answer)
	}
	if want := "/v1/audio/transcriptions\n" + ctype + "\n" + body; <-got != want {
		t.Error("the worker got another body than was sent")
	}
}

// TestCORS answers pages of the configured origins, and tells others nothing.
func TestCORS(t *testing.T) {
	w := sim.New(sim.Options{Words: 2})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) { s.Door.CORS = configs.CORS{Origins: []string{"https://app.example"}} })
	f := func(name, method, origin, body string, status int, want string) {
		t.Helper()
		req, err := http.NewRequest(method, r.url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		req.Header.Set("Content-Type", "application/json")
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != status || got != want {
			t.Errorf("%s: got %d and %q; want %d and %q", name, resp.StatusCode, got, status, want)
		}
	}
	f("preflight", "OPTIONS", "https://app.example", "", 204, "https://app.example")
	f("preflight of a stranger", "OPTIONS", "https://evil.example", "", 204, "")
	f("answer", "POST", "https://app.example", okBody, 200, "https://app.example")
	f("stream", "POST", "https://app.example", fmt.Sprintf(chatBody, true, ""), 200, "https://app.example")
	f("a stranger's", "POST", "https://evil.example", okBody, 200, "")
	f("an error", "POST", "https://app.example", "{", 400, "https://app.example")
}

// TestOldClients speaks HTTP/1.0: a stream ends with its connection and has no
// chunks.
func TestOldClients(t *testing.T) {
	w := sim.New(sim.Options{Words: 4})
	r := newRig(t, []*sim.Worker{w}, nil)
	for _, stream := range []bool{false, true} {
		c := dialRaw(t, r.url)
		body := fmt.Sprintf(chatBody, stream, "")
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.0\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || len(resp.TransferEncoding) > 0 || !strings.Contains(string(b), `3 "`) || stream && !strings.HasSuffix(string(b), "data: [DONE]\n\n") {
			t.Errorf("stream %v: got %v %q %v", stream, resp.TransferEncoding, b, err)
		}
		resp.Body.Close()
		if _, err := c.in.ReadByte(); err != io.EOF {
			t.Errorf("stream %v: the connection goes on: %v", stream, err)
		}
	}
}

// TestOddAnswers has a worker answer as no worker should. What is legal passes
// as it is; what is not becomes an error that says so, and nothing of it
// reaches the next request.
func TestOddAnswers(t *testing.T) {
	const sse = "Content-Type: text/event-stream\r\n"
	f := func(name, head, body string, stream bool, status int, check func(said) bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a request that every worker has failed waits two seconds for another one
			var served atomic.Int64
			r := stubRig(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				if served.Add(1) > 3 {
					io.WriteString(w, `{"choices":[{"message":{"content":"well"}}]}`)
					return
				}
				c, rw, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				rw.WriteString(head + "\r\n" + body)
				rw.Flush()
			})
			resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, stream, ""))
			if resp.StatusCode != status {
				t.Errorf("got %d %.300q; want %d", resp.StatusCode, got, status)
			}
			if status >= 400 && !strings.Contains(got, `"error":{`) || strings.Contains(got, "smuggled") {
				t.Errorf("got %.300q", got)
			}
			if check != nil && !check(hear(t, strings.TrimPrefix(got, "\ufeff"))) {
				t.Errorf("got %.1000q", got)
			}
			r.until("the next request is answered well", func() bool {
				served.Store(3)
				_, next := r.post("/v1/chat/completions", okBody)
				return strings.Contains(next, "well")
			})
		})
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	whole := func(s said) bool { return s.done && !s.failed }
	broken := func(s said) bool { return s.failed && !s.done }
	long := strings.Replace(oneEvent, "hi", strings.Repeat("x", 1<<20), 1)
	f("an event of more than a MiB", ok+sse, long+endEvents, true, 200, func(s said) bool { return s.raw == long+endEvents })
	f("an event of more than it may be", ok+sse, strings.Replace(oneEvent, "hi", strings.Repeat("x", 5<<20), 1)+endEvents, true, 200, broken)
	f("[DONE] twice", ok+sse, endEvents+"data: [DONE]\n\n", true, 200, func(s said) bool { return whole(s) && strings.Count(s.raw, "[DONE]") == 1 })
	f("events that end in CR LF", ok+sse, strings.ReplaceAll(oneEvent+endEvents, "\n", "\r\n"), true, 200, nil)
	f("no end", ok+sse, oneEvent, true, 200, broken)
	last := strings.TrimSuffix(endEvents, "data: [DONE]\n\n")
	f("cut behind its last token", ok+sse+"Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(oneEvent+last), oneEvent+last), true, 200, func(s said) bool { return whole(s) && s.text == "hi." })
	f("an error in the stream", ok+sse, oneEvent+"data: {\"error\":{\"message\":\"CUDA\",\"code\":500}}\n\n", true, 200, broken)
	f("a page", ok+"Content-Type: text/html\r\nContent-Length: 6\r\n", "<html>", true, 200, nil)
	f("less than it says", ok+"Content-Length: 100\r\n", "{}", false, 502, nil)
	f("more than it says", ok+"Content-Length: 2\r\n", "{}HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled", false, 200, nil)
	f("two lengths", ok+"Content-Length: 2\r\nContent-Length: 8\r\n", "{}smuggled", false, 502, nil)
	f("a length and chunks", ok+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nsmuggled", false, 502, nil)
	f("bad chunks", ok+"Transfer-Encoding: chunked\r\n", "zz\r\nsmuggled", false, 502, nil)
	f("a head without end", ok+strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 1000), "", false, 502, nil)
	f("a field with a line end in it", ok+"X-Request-Id: a\rX: smuggled\r\nContent-Length: 2\r\n", "{}", false, 502, nil)
	f("no HTTP", "SSH-2.0-x\r\n", "", false, 502, nil)
	f("nothing", "", "", false, 502, nil)
}
