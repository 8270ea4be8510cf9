package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// request is the bytes of a chat request.
func request(stream bool, user string, promptBytes int) []byte {
	body := fmt.Sprintf(`{"model":"sim","stream":%v,"user":%q,"max_tokens":100,"messages":[{"role":"user","content":"%s"}]}`, stream, user, strings.Repeat("word ", promptBytes/5))
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// client is one keep-alive connection.
type client struct {
	c  net.Conn
	br *bufio.Reader
}

// dialer opens a connection, plain or by TLS.
type dialer func(network, addr string) (net.Conn, error)

func dial(addr string) (*client, error) { return dialBy(net.Dial, addr) }

func dialBy(dial dialer, addr string) (*client, error) {
	c, err := dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{c, bufio.NewReaderSize(c, 4096)}, nil
}

// head reads the head of an answer.
func (c *client) head() (length int, chunked bool, err error) {
	line, err := c.br.ReadSlice('\n')
	if err != nil {
		return 0, false, err
	}
	if !bytes.Contains(line, []byte(" 200 ")) {
		return 0, false, fmt.Errorf("answer %q", line)
	}
	for {
		line, err := c.br.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		if len(line) <= 2 {
			return length, chunked, nil
		}
		low := bytes.ToLower(line)
		if v, ok := bytes.CutPrefix(low, []byte("content-length:")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
		chunked = chunked || bytes.HasPrefix(low, []byte("transfer-encoding: chunked"))
	}
}

// do sends a request and reads its answer; it returns the events in it.
func (c *client) do(req []byte) (events int, err error) {
	if _, err := c.c.Write(req); err != nil {
		return 0, err
	}
	length, chunked, err := c.head()
	if err != nil {
		return 0, err
	}
	if !chunked {
		_, err = c.br.Discard(length)
		return 0, err
	}
	for {
		line, err := c.br.ReadSlice('\n')
		if err != nil {
			return events, err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return events, err
		}
		if _, err := c.br.Discard(int(n) + 2); err != nil {
			return events, err
		}
		if n == 0 {
			return events, nil
		}
	}
}

// result is what a load run found.
type result struct {
	requests int64
	seconds  float64
	times    []time.Duration
	failed   int64
}

func (r *result) at(q float64) float64 {
	if len(r.times) == 0 {
		return 0
	}
	slices.Sort(r.times)
	return r.times[min(len(r.times)-1, int(q*float64(len(r.times))))].Seconds()
}

// hammer keeps n connections busy for a while.
func hammer(addr string, n int, req []byte, span time.Duration) (*result, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := &result{}
	var stop atomic.Bool
	began := time.Now()
	for range n {
		wg.Go(func() {
			c, err := dial(addr)
			if err != nil {
				atomic.AddInt64(&out.failed, 1)
				return
			}
			defer c.c.Close()
			var times []time.Duration
			for !stop.Load() {
				t := time.Now()
				if _, err := c.do(req); err != nil {
					atomic.AddInt64(&out.failed, 1)
					break
				}
				times = append(times, time.Since(t))
			}
			mu.Lock()
			out.times = append(out.times, times...)
			mu.Unlock()
		})
	}
	time.Sleep(span)
	stop.Store(true)
	wg.Wait()
	out.seconds = time.Since(began).Seconds()
	out.requests = int64(len(out.times))
	if out.failed > 0 {
		return out, fmt.Errorf("%d of %d requests failed", out.failed, out.failed+out.requests)
	}
	return out, nil
}

// open starts n streams and leaves them running.
func open(addr string, n int, req []byte, dial dialer) ([]net.Conn, error) {
	conns := make([]net.Conn, 0, n)
	for range n {
		c, err := dial("tcp", addr)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		if _, err := c.Write(req); err != nil {
			return conns, err
		}
		if len(conns)%200 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return conns, nil
}

// alive counts the streams that still send.
func alive(conns []net.Conn) (n int) {
	buf := make([]byte, 64<<10)
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		k, err := c.Read(buf)
		if k > 0 && err == nil {
			n++
		}
	}
	return n
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}
