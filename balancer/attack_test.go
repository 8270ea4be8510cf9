package balancer_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// raw sends bytes as they are and returns the statuses of all answers until
// the door closes or stays silent, or there are so many (0: any), and whether
// it closed.
func (r *rig) raw(payload string, patience time.Duration, enough int) (statuses []int, closed bool) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	go io.WriteString(c, payload)
	c.SetReadDeadline(time.Now().Add(patience))
	br := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			ne, ok := err.(net.Error)
			return statuses, !ok || !ne.Timeout()
		}
		io.Copy(io.Discard, resp.Body)
		if statuses = append(statuses, resp.StatusCode); len(statuses) == enough {
			return statuses, false
		}
	}
}

const okBody = `{"model":"sim","messages":[{"role":"user","content":"x"}]}`

// TestAttacks sends what must never reach a worker, and looks at the answer.
func TestAttacks(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Limits.Body = 64 << 10
	})
	n := len(okBody)
	post := func(fields, body string) string {
		return "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body
	}
	length := fmt.Sprintf("Content-Length: %d\r\n", n)
	chunked := "Transfer-Encoding: chunked\r\n"
	whole := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, okBody)
	f := func(name, payload string, want int) {
		t.Run(name, func(t *testing.T) {
			before := w.Served.Load()
			enough := 0
			if want == 200 || want == 404 {
				enough = 1 // the connection stays open
			}
			statuses, closed := r.raw(payload, time.Minute, enough)
			got := 0
			if len(statuses) > 0 {
				got = statuses[0]
			}
			if got != want || want >= 400 && want != 404 && want != 401 && (!closed || len(statuses) != 1) {
				t.Errorf("got %v, closed %v; want %d", statuses, closed, want)
			}
			if want != 200 && w.Served.Load() != before {
				t.Error("it reached a worker")
			}
		})
	}
	// Compliant requests pass.
	f("good", post(length, okBody), 200)
	f("good, chunked", post(chunked, whole), 200)
	f("good, chunk extension", post(chunked, fmt.Sprintf("%x;a=b\r\n%s\r\n0\r\n\r\n", n, okBody)), 200)
	f("good, trailer", post(chunked, fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n", n, okBody)), 200)
	f("good, an empty line before", "\r\n"+post(length, okBody), 200)
	f("good, upgrade ignored", post(length+"Upgrade: h2c\r\nConnection: upgrade\r\n", okBody), 200)
	f("good, connection names our fields", post(length+"Connection: x-forwarded-for, authorization\r\n", okBody), 200)
	// A. Framing.
	f("length and chunked", post(length+chunked, okBody), 400)
	f("two equal lengths", post(length+length, okBody), 400)
	f("two lengths", post(length+"Content-Length: 3\r\n", okBody), 400)
	f("list of lengths", post(fmt.Sprintf("Content-Length: %d, %d\r\n", n, n), okBody), 400)
	for _, v := range []string{"+10", "-1", "0x10", "1_0", "", "18446744073709551616", "1 0", "１０"} {
		f("length "+v, post("Content-Length: "+v+"\r\n", okBody), 400)
	}
	for _, v := range []string{"xchunked", "chunked, chunked", "identity, chunked", ",chunked", "\x0bchunked", "gzip", "identity", ""} {
		f("coding "+v, post("Transfer-Encoding: "+v+"\r\n", whole), 400)
	}
	f("two codings", post(chunked+chunked, whole), 400)
	f("coding on HTTP/1.0", "POST /v1/chat/completions HTTP/1.0\r\nHost: a\r\n"+chunked+"\r\n"+whole, 400)
	for _, v := range []string{"0_2e", "0x5", "", "-1", "11111111111111111", " 5", "5 "} {
		f("chunk size "+v, post(chunked, v+"\r\n"+okBody+"\r\n0\r\n\r\n"), 400)
	}
	f("chunk line ends in LF", post(chunked, fmt.Sprintf("%x\n%s\r\n0\r\n\r\n", n, okBody)), 400)
	f("chunk line ends in CR X", post(chunked, fmt.Sprintf("%x\rX%s\r\n0\r\n\r\n", n, okBody)), 400)
	f("long chunk extension", post(chunked, fmt.Sprintf("%x;%s\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("a", 1<<20), okBody)), 400)
	f("chunk without its end", post(chunked, fmt.Sprintf("%x\r\n%sXX0\r\n\r\n", n, okBody)), 400)
	for _, v := range []string{"Content-Length: 5", "Host: b", "Authorization: x", "Transfer-Encoding: chunked", "bad name: x", "novalue"} {
		f("trailer "+v, post(chunked, fmt.Sprintf("%x\r\n%s\r\n0\r\n%s\r\n\r\n", n, okBody, v)), 400)
	}
	f("bare LF in the request line", "POST /v1/chat/completions HTTP/1.1\nHost: a\r\n"+length+"\r\n"+okBody, 400)
	f("bare LF in a field", post("X: a\n"+length, okBody), 400)
	f("bare CR in a field", post("X: a\rb\r\n"+length, okBody), 400)
	f("NUL in a field", post("X: a\x00b\r\n"+length, okBody), 400)
	f("folded field", post("X: a\r\n b\r\n"+length, okBody), 400)
	f("space before colon", post("Content-Length : 5\r\n", okBody), 400)
	f("space before the first field", "POST /v1/chat/completions HTTP/1.1\r\n Host: a\r\n"+length+"\r\n"+okBody, 400)
	f("space in a name", post("Transfer- Encoding: chunked\r\n", whole), 400)
	for _, v := range []string{"HTTP/9.9", "HTTP/2.0", "HTTP/0.9", "HTTP/1.2"} {
		f(v, "GET /v1/models "+v+"\r\nHost: a\r\n\r\n", 505)
	}
	f("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
	f("lower-case version", "GET /v1/models http/1.1\r\nHost: a\r\n\r\n", 400)
	f("long request line", "GET /"+strings.Repeat("a", 9000)+" HTTP/1.1\r\nHost: a\r\n\r\n", 414)
	f("GET with a body", "GET /v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 400)
	f("body too long", post("Content-Length: 65537\r\n", ""), 413)
	f("body too long, with expectation", post("Content-Length: 65537\r\nExpect: 100-continue\r\n", ""), 413)
	f("chunked body too long", post(chunked, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 70000, strings.Repeat("a", 70000))), 413)
	f("unknown expectation", post(length+"Expect: x\r\n", okBody), 417)
	f("CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 405)
	f("TRACE", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405)
	f("unknown method", "BREW /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", 501)
	f("TLS on a plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 0)
	// B. Fields and targets.
	f("no host", "GET /v1/models HTTP/1.1\r\nX: a\r\n\r\n", 400)
	f("two hosts", "GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400)
	for _, v := range []string{"a/?x=", "a#", "a,b", "u@a", "a b", "a:port", "[::1", ""} {
		f("host "+v, "GET /v1/models HTTP/1.1\r\nHost: "+v+"\r\n\r\n", 400)
	}
	f("absolute target", "GET http://b/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", 200)
	f("absolute target without a path", "GET HTTPS://b:80 HTTP/1.1\r\nHost: a\r\n\r\n", 404)
	f("absolute target without a host", "GET http:///v1/models HTTP/1.1\r\nHost: a\r\n\r\n", 400)
	f("absolute target with a user", "GET http://u@b/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", 400)
	f("absolute target of another scheme", "GET ftp://b/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", 400)
	f("101 fields", "GET /v1/models HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("X: y\r\n", 101)+"\r\n", 431)
	f("a long head", "GET /v1/models HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("X: "+strings.Repeat("y", 8000)+"\r\n", 20)+"\r\n", 431)
	f("good, an underscore is ignored", post("Content_Length: 5\r\nTransfer_Encoding: chunked\r\n"+length, okBody), 200)
	f("two authorizations", post(length+"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", okBody), 400)
	for _, p := range []string{"/v1/%2e%2e/pause", "/v1/../pause", "//v1/models", "/v1/models/", "/pause", "/collective_rpc", "/v1/load_lora_adapter", "/invocations", "/update_weights", "/v1/models;x", "/v1/chat/completions/", "/V1/models", "/sleep", "/start_profile", "/stop_profile", "/v1/start_profile"} {
		f("path "+p, "POST "+p+" HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 404)
	}
}

// TestBodies refuses bodies that two readers could understand in two ways.
func TestBodies(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, nil)
	f := func(name, body string, want int) {
		t.Run(name, func(t *testing.T) {
			before := w.Served.Load()
			resp, got := r.post("/v1/chat/completions", body)
			if resp.StatusCode != want || want >= 400 && !strings.Contains(got, `"error":{"message":`) {
				t.Errorf("got %d %s; want %d", resp.StatusCode, got, want)
			}
			if want != 200 && w.Served.Load() != before {
				t.Error("it reached a worker")
			}
		})
	}
	const m = `"messages":[{"role":"user","content":"x"}]`
	f("good", okBody, 200)
	f("good, spread", " {\n \"model\" : \"sim\" , "+m+" } \n", 200)
	f("deep", `{"model":"sim",`+m+`,"x":`+strings.Repeat("[", 10001)+strings.Repeat("]", 10001)+`}`, 400)
	f("model twice", `{"model":"sim","model":"sim",`+m+`}`, 400)
	f("model twice, escaped", `{"model":"sim","mod\u0065l":"sim",`+m+`}`, 400)
	f("stream twice", `{"model":"sim","stream":false,"stream":true,`+m+`}`, 400)
	f("max_tokens twice", `{"model":"sim","max_tokens":1,"max_tokens":2,`+m+`}`, 400)
	f("max_tokens 1e999", `{"model":"sim","max_tokens":1e999,`+m+`}`, 400)
	f("max_tokens 1e-2", `{"model":"sim","max_tokens":1e-2,`+m+`}`, 400)
	f("max_tokens 2^63", `{"model":"sim","max_tokens":9223372036854775808,`+m+`}`, 400)
	f("NaN", `{"model":"sim","temperature":NaN,`+m+`}`, 400)
	f("lone surrogate", `{"model":"sim","x":"\ud800",`+m+`}`, 400)
	f("invalid UTF-8", "{\"model\":\"sim\",\"x\":\"\xff\","+m+`}`, 400)
	f("NUL in a string", "{\"model\":\"sim\",\"x\":\"\x00\","+m+`}`, 400)
	f("BOM", "\xef\xbb\xbf"+okBody, 400)
	f("trailing garbage", okBody+"x", 400)
	f("two documents", okBody+okBody, 400)
	f("truncated", okBody[:20], 400)
	for _, root := range []string{"null", "[]", `""`, ""} {
		f("root "+root, root, 400)
	}
	f("no messages", `{"model":"sim","messages":[]}`, 400)
	f("messages of the wrong type", `{"model":"sim","messages":"x"}`, 400)
	f("unknown model", `{"model":"../x",`+m+`}`, 404)
	f("the door's own field", `{"model":"sim","roundhouse_resume":{},`+m+`}`, 400)
	f("case variant is another field", `{"Model":"x","model":"sim",`+m+`}`, 200)
}

// TestPipelining answers requests that came together one after the other.
func TestPipelining(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 5, Pace: time.Millisecond})
	r := newRig(t, []*sim.Worker{w}, nil)
	one := func(stream bool) string {
		b := fmt.Sprintf(chatBody, stream, "")
		return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
	}
	if got, _ := r.raw(one(false)+one(false), time.Minute, 2); fmt.Sprint(got) != "[200 200]" {
		t.Errorf("two requests: got %v", got)
	}
	if got, closed := r.raw(one(true)+one(false), time.Minute, 2); len(got) == 0 || got[0] != 200 || len(got) == 1 && !closed {
		t.Errorf("a request behind a stream: got %v, closed %v", got, closed)
	}
	if got, closed := r.raw(one(false)+"garbage\r\n\r\n", time.Minute, 0); fmt.Sprint(got) != "[200 400]" || !closed {
		t.Errorf("garbage behind a request: got %v, closed %v", got, closed)
	}
}

// TestSlowClients bounds how long a request may take to arrive.
func TestSlowClients(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Limits.HeaderRead = configs.Duration(400 * time.Millisecond)
		s.Door.Limits.BodyIdle = configs.Duration(400 * time.Millisecond)
	})
	f := func(name, payload, want string) {
		// Who connects and is held up before the first byte is told nothing.
		unstalled(t, 200*time.Millisecond, func() error {
			if got, closed := r.raw(payload, time.Minute, 0); fmt.Sprint(got) != want || !closed {
				return fmt.Errorf("%s: got %v, closed %v; want %s", name, got, closed, want)
			}
			return nil
		})
	}
	f("half a head", "POST /v1/chat/completions HTTP/1.1\r\nHo", "[408]")
	f("half a body", "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{", "[408]")
	f("nothing", "", "[]")
}

// TestHalfRequests ends a request before it is whole: it is never forwarded.
func TestHalfRequests(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, nil)
	const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
	for name, payload := range map[string]string{
		"no last chunk":    head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(okBody), okBody),
		"half a last line": head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n", len(okBody), okBody),
		"half a body":      head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(okBody)+1, okBody),
		"half a head":      head + "Content-Le",
	} {
		c := dialRaw(t, r.url)
		io.WriteString(c, payload)
		c.Conn.(*net.TCPConn).CloseWrite()
		if resp, err := http.ReadResponse(c.in, nil); err == nil && (resp.StatusCode != 400 || !resp.Close) {
			t.Errorf("%s: got %d, and the connection goes on: %v", name, resp.StatusCode, !resp.Close)
		}
	}
	if w.Served.Load() != 0 {
		t.Error("it reached a worker")
	}
}
