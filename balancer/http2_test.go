package balancer_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// http2Rig is a door with HTTP/2, and a client that speaks nothing else.
func http2Rig(t *testing.T, workers []*sim.Worker, change func(*control.WorkerSet)) (*rig, *http.Client) {
	r := newRig(t, workers, func(s *control.WorkerSet) {
		s.Door.HTTP2 = true
		if change != nil {
			change(s)
		}
	})
	return r, http2Client(t, nil)
}

func http2Client(t *testing.T, cfg *http.HTTP2Config) *http.Client {
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p, HTTP2: cfg}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// over sends one request with a client, and returns the answer and its text.
func over(t *testing.T, c *http.Client, method, url, body string, fields ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%v after %s", err, text)
	}
	return resp, string(text)
}

// TestHTTP2 serves what HTTP/1.1 is served, by the same rules: answers, streams, long
// bodies of known and unknown length, refusals, many at once.
func TestHTTP2(t *testing.T) {
	files, pool := certificate(t)
	for _, secure := range []bool{false, true} {
		r, c := http2Rig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 20})}, func(s *control.WorkerSet) {
			s.Door.Keys = []configs.Key{{Name: "team", SHA256: []string{hashOf("k")}, Models: []string{"*"}}}
			s.Door.Limits.Body = 1 << 20
			if secure {
				s.Door.TLS = files
			}
		})
		if secure {
			r.url = strings.Replace(r.url, "http:", "https:", 1)
			c.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
			t.Cleanup(c.CloseIdleConnections)
		}
		at, key := r.url+"/v1/chat/completions", []string{"Authorization", "Bearer k", "Content-Type", "application/json"}
		resp, got := over(t, c, "POST", at, okBody, key...)
		if resp.ProtoMajor != 2 || resp.StatusCode != 200 || !strings.Contains(got, words(0, 20)) || resp.Header.Get("X-Roundhouse-Worker") != "p/1" || len(resp.Header["Date"]) != 1 {
			t.Fatalf("got %v %s", resp, got)
		}
		resp, got = over(t, c, "POST", at, fmt.Sprintf(chatBody, true, ""), key...)
		if s := hear(t, got); s.text != words(0, 20) || !s.done || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			t.Fatalf("got %+v", s)
		}
		long := strings.Replace(okBody, `"x"`, `"`+strings.Repeat("long ", 50_000)+`"`, 1)
		if resp, got := over(t, c, "POST", at, long, key...); resp.StatusCode != 200 {
			t.Errorf("a long prompt: got %d %s", resp.StatusCode, got)
		}
		req, _ := http.NewRequest("POST", at, io.MultiReader(strings.NewReader(long))) // whose length is not known
		req.Header.Set("Authorization", "Bearer k")
		if resp, err := c.Do(req); err != nil || resp.StatusCode != 200 {
			t.Errorf("a body without length: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
		for _, f := range []struct {
			method, path, body string
			want               int
			fields             []string
		}{
			{"POST", "/v1/chat/completions", okBody, 401, nil},
			{"POST", "/v1/chat/completions", strings.Repeat("x", 2<<20), 413, key},
			{"POST", "/v1/chat/completions", strings.Repeat("x", 1<<20), 401, nil},
			{"POST", "/v1/chat/completions", `{"model":"none"}`, 404, key},
			{"GET", "/v1/chat/completions", "", 405, key},
			{"GET", "/v1/models", "", 200, key},
			{"HEAD", "/v1/models", "", 200, key},
			{"GET", "/nothing", "", 404, key},
			{"GET", "/health", "", 200, nil},
			{"POST", "/v1/chat/completions", okBody, 200, append(key, "Te", "trailers", "Expect", "100-continue")},
		} {
			if resp, got := over(t, c, f.method, r.url+f.path, f.body, f.fields...); resp.StatusCode != f.want || f.want == 405 && resp.Header.Get("Allow") == "" {
				t.Errorf("%s %s is answered %d, want %d: %s", f.method, f.path, resp.StatusCode, f.want, got)
			}
		}
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				_, got := over(t, c, "POST", at, fmt.Sprintf(chatBody, true, ""), key...)
				if s := hear(t, got); s.text != words(0, 20) || !s.done {
					t.Errorf("%d: got %+v", i, s)
				}
			})
		}
		all.Wait()
	}
}

// TestHTTP2IsASwitch: where it is off, or the client does not want it, HTTP/1.1 is spoken.
func TestHTTP2IsASwitch(t *testing.T) {
	files, pool := certificate(t)
	for _, on := range []bool{true, false} {
		r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true})}, func(s *control.WorkerSet) { s.Door.HTTP2, s.Door.TLS = on, files })
		for _, wants := range []bool{true, false} {
			p := &http.Protocols{}
			p.SetHTTP1(true)
			p.SetHTTP2(wants)
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: p}}
			resp, _ := over(t, c, "GET", strings.Replace(r.url, "http:", "https:", 1)+"/health", "")
			if want := 1; resp.StatusCode != 200 || (resp.ProtoMajor == 2) != (on && wants) {
				t.Errorf("on %v, wanted %v: HTTP/%d, want %d", on, wants, resp.ProtoMajor, want)
			}
			c.CloseIdleConnections()
		}
	}
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true})}, nil)
	if statuses, closed := r.raw(preface, time.Minute, 0); !closed || len(statuses) != 1 || statuses[0] != 505 {
		t.Errorf("a door without HTTP/2 answers its preface %v, closed %v", statuses, closed)
	}
}

// TestHTTP2Flushes: events reach the client as the worker sends them, and its leaving one
// stream ends that request at the worker, and no other.
func TestHTTP2Flushes(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 3, Prefill: time.Millisecond})
	r, c := http2Rig(t, []*sim.Worker{w}, nil)
	w.Pace = time.Hour
	begin := func(ctx context.Context) *http.Response {
		req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		some := make([]byte, 1)
		if _, err := resp.Body.Read(some); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
		return resp
	}
	ctx, cancel := context.WithCancel(t.Context())
	one, two := begin(ctx), begin(t.Context())
	r.until("both are there", func() bool { return w.Live.Load() == 2 })
	cancel()
	if _, err := io.ReadAll(one.Body); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.until("the worker is told that one has left", func() bool { return w.Cancelled.Load() == 1 && w.Live.Load() == 1 })
	two.Body.Close()
	r.until("and then the other", func() bool { return w.Cancelled.Load() == 2 })
	// While no byte of the answer has come, too.
	w.Hang.Store(true)
	ctx, cancel = context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(okBody))
	go func() {
		r.until("the worker has it", func() bool { return w.Live.Load() == 1 })
		cancel()
	}()
	if resp, err := c.Do(req); err == nil {
		resp.Body.Close()
		t.Error("an answer came")
	}
	r.until("the worker is told", func() bool { return w.Cancelled.Load() == 3 })
}

// TestHTTP2Breaks: a stream that cannot go on ends with an error event and no end that
// could be taken for success.
func TestHTTP2Breaks(t *testing.T) {
	w := sim.New(sim.Options{Words: 50, NoIDs: true, Salt: "a"})
	r, c := http2Rig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Resume.Enabled = false
		s.Door.Queue.MaxWait = configs.Duration(50 * time.Millisecond)
	})
	w.DieAfter.Store(10)
	resp, err := c.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil || !strings.Contains(string(text), `"error"`) || strings.Contains(string(text), "[DONE]") {
		t.Errorf("%v after %s", err, text)
	}
}

// TestHTTP2Backpressure: a client whose window is full delays its worker, not the other
// streams of its connection, and is let go when it takes nothing for long.
func TestHTTP2Backpressure(t *testing.T) {
	writeWithin = 300 * time.Millisecond
	defer func() { writeWithin = 0 }()
	w := sim.New(sim.Options{Own: true, Words: 1 << 20, Capacity: 1 << 40, Context: 1 << 30})
	r, _ := http2Rig(t, []*sim.Worker{w}, nil)
	c := http2Client(t, &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 1 << 20})
	resp, err := c.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := over(t, c, "GET", r.url+"/v1/models", ""); got.StatusCode != 200 {
		t.Errorf("another stream is answered %d", got.StatusCode)
	}
	r.until("the client is let go", func() bool { return w.Cancelled.Load() == 1 })
	if got, _ := over(t, c, "GET", r.url+"/v1/models", ""); got.StatusCode != 200 {
		t.Errorf("then another stream is answered %d", got.StatusCode)
	}
}

// TestHTTP2Client: the log of requests has the client of the connection, and filters and
// bounds with it.
func TestHTTP2Client(t *testing.T) {
	r, lines := accessRig(t, func(s *control.WorkerSet) { s.Door.HTTP2, s.Door.ProxyProtocol = true, []string{"127.0.0.1"} })
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	proxied := &http.Client{Transport: &http.Transport{Protocols: p, DialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
		c, err := net.Dial(network, addr)
		if err == nil {
			io.WriteString(c, proxyTwo)
		}
		return c, err
	}}}
	defer proxied.CloseIdleConnections()
	over(t, http2Client(t, nil), "POST", r.url+"/v1/chat/completions", okBody, "X-Request-Id", "one")
	over(t, proxied, "POST", r.url+"/v1/chat/completions", okBody, "X-Request-Id", "two")
	got := lines(2)
	if !strings.Contains(got["one"], " client=127.0.0.1 ") || !strings.Contains(got["two"], " client=203.0.113.9 ") {
		t.Error(got)
	}
}

// TestHTTP2Drains: a door that ends tells its clients to connect anew, and lets what is
// under way end.
func TestHTTP2Drains(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 100, Pace: time.Millisecond})
	ds := startOneDoor(t, w)
	c := http2Client(t, nil)
	resp, err := c.Post(ds.url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ds.start("door-2")
	ds.must("door-2", "PUT", "/worker-set", ds.set, nil)
	ds.reach("door-2")
	left := make(chan bool)
	go func() {
		ds.leave("door-1")
		close(left)
	}()
	for over := false; !over; { // requests at each moment of it go to either door
		if resp, err := c.Post(ds.url+"/v1/chat/completions", "application/json", strings.NewReader(okBody)); err != nil {
			t.Fatal(err)
		} else if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %s, %v", resp.StatusCode, text, err)
		} else {
			resp.Body.Close()
		}
		select {
		case <-left:
			over = true
		default:
		}
	}
	text, err := io.ReadAll(resp.Body)
	if s := hear(t, string(text)); err != nil || !s.done || s.text != words(0, 100) {
		t.Errorf("%v, %+v", err, s)
	}
}

// handed is doors with the worker set that they are given.
type handed struct {
	*doors
	set control.WorkerSet
}

func startOneDoor(t *testing.T, w *sim.Worker) *handed {
	startWorkers(t, w)
	ds := &handed{newDoors(t), setOf(nil, w)}
	ds.set.Door.HTTP2 = true
	ds.start("door-1")
	ds.must("door-1", "PUT", "/worker-set", ds.set, nil)
	ds.reach("door-1")
	return ds
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// frame is one frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	return string(binary.BigEndian.AppendUint32(b, stream)) + payload
}

// The kinds of frames, and the flags of one that ends a stream and a head.
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameAway, frameMore = 0, 1, 3, 4, 6, 7, 9
	endsBoth                                                                            = 5
)

// field is one field of a head, as a literal.
func field(name, value string) string {
	return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
}

func health(stream uint32) string {
	return frame(frameHeaders, endsBoth, stream, field(":method", "GET")+field(":scheme", "http")+field(":path", "/health")+field(":authority", "a"))
}

// TestHTTP2Floods: whoever resets or announces without end is let go, as is who
// speaks no HTTP/2 after its preface; nobody else notices.
func TestHTTP2Floods(t *testing.T) {
	r, c := http2Rig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 1})}, func(s *control.WorkerSet) {
		s.Door.Limits.HeaderRead = configs.Duration(time.Second)
	})
	for _, f := range []struct {
		name string
		next func(i uint32) string
		most uint32
	}{
		{"resets", func(i uint32) string { return health(2*i+1) + frame(frameReset, 0, 2*i+1, "\x00\x00\x00\x08") }, 100_000},
		{"a head without end", func(i uint32) string {
			if i == 0 {
				return frame(frameHeaders, 1, 1, field(":method", "GET"))
			}
			return frame(frameMore, 0, 1, strings.Repeat(field("x", strings.Repeat("a", 100)), 100))
		}, 2_000},
		{"garbage", func(uint32) string {
			return "\x00\x00\x08\x99\x00\x00\x00\x00\x00garbage!" + frame(frameData, 1, 7, "x")
		}, 1000},
	} {
		if !flooded(t, r.addr, f.next, f.most) {
			t.Errorf("%s: all of it was taken, and the connection is still there", f.name)
		}
	}
	if resp, _ := over(t, c, "POST", r.url+"/v1/chat/completions", okBody); resp.StatusCode != 200 {
		t.Errorf("somebody else is answered %d", resp.StatusCode)
	}
}

// flooded sends frames, and reports whether the door has ended the connection.
func flooded(t *testing.T, addr string, next func(i uint32) string, most uint32) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	}()
	b := []byte(preface + frame(frameSettings, 0, 0, ""))
	for i := range most {
		if b = append(b, next(i)...); len(b) < 16<<10 {
			continue
		}
		if _, err := c.Write(b); err != nil {
			return !conn.TimedOut(err)
		}
		b = b[:0]
	}
	c.Write(b)
	return !conn.TimedOut(<-ended)
}

// TestHTTP2Bounds: a connection has as many streams at once as configured, and each counts
// as a connection.
func TestHTTP2Bounds(t *testing.T) {
	for _, c := range []struct {
		streams, connections, served int
		refuses                      bool
	}{{2, 100, 2, false}, {100, 3, 2, true}} {
		w := sim.New(sim.Options{Own: true, Words: 1})
		r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
			s.Door.HTTP2, s.Door.Limits.Streams, s.Door.Limits.Connections = true, c.streams, c.connections
			s.Pools[0].Policy = "round_robin" // which sends a worker what it cannot begin yet
		})
		w.Hang.Store(true)
		client := http2Client(t, &http.HTTP2Config{StrictMaxConcurrentRequests: true})
		over(t, client, "GET", r.url+"/health", "") // or each request would make a connection at first
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var refused atomic.Int64
		for i := range 5 {
			all.Go(func() {
				for ctx.Err() == nil && (refused.Load() < 3 || int(w.Live.Load()) < c.served) { // the first one's stream may still count
					req, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(okBody))
					if resp, err := client.Do(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body) // a stream that is left counts against the client
						resp.Body.Close()
						refused.Add(1)
					}
				}
			})
			// Go's client counts requests that have not begun against what it may begin, and
			// several at once wait for each other.
			r.until("it is served, or refused", func() bool { return int(w.Live.Load()) >= min(i+1, c.served) })
		}
		r.until("as many are served and refused as may be", func() bool { return int(w.Live.Load()) == c.served && (refused.Load() >= 3) == c.refuses })
		cancel()
		all.Wait()
	}
}
