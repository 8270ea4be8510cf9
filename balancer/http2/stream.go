package http2

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

type clientKey struct{}

// piece is what is copied of an answer at once.
const piece = 16 << 10

var pieces = sync.Pool{New: func() any { return new([piece]byte) }}

// serve answers one stream.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.active.Add(1)
	defer s.active.Add(-1)
	of := r.Context().Value(clientKey{}).(*client)
	c, left := s.inner(of.Conn)
	if c == nil {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer c.Close()
	stop := context.AfterFunc(r.Context(), func() {
		c.Close()
		left()
		of.reset(time.Now())
	})
	defer stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		send(c, r)
	}()
	in := bufio.NewReaderSize(c, piece)
	resp, err := http.ReadResponse(in, &http.Request{Method: r.Method})
	if err != nil {
		panic(http.ErrAbortHandler) // as a connection that ends without an answer
	}
	s.head(w.Header(), resp)
	out := &writer{w: w, ctl: http.NewResponseController(w), within: of.write}
	w.WriteHeader(resp.StatusCode)
	if err := out.copy(resp.Body, resp.ContentLength < 0); err != nil {
		panic(http.ErrAbortHandler) // what has come is not taken for all
	}
	for name, values := range resp.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
	c.Close()
	linger := time.NewTimer(lingerFor)
	defer linger.Stop()
	select {
	case <-sent:
	case <-linger.C:
	case <-r.Context().Done():
	}
}

// What a client that is answered still sends of its body is taken for a moment: many
// take a stream that is reset under them for an error, and not the answer.
const (
	lingerFor  = 300 * time.Millisecond
	lingerMost = 4 << 20
)

// hop are the fields of one connection alone, which HTTP/2 has no place for, and those
// that are written anew.
var hop = map[string]bool{"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Transfer-Encoding": true, "Upgrade": true,
	"Te": true, "Trailer": true, "Host": true, "Content-Length": true, "Expect": true, "Http2-Settings": true}

// send writes the request as HTTP/1.1 has it. The head goes at once, so that it is
// judged before its body has come.
func send(c net.Conn, r *http.Request) {
	b := bufio.NewWriterSize(c, piece)
	fmt.Fprintf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.RequestURI, r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			if !hop[name] {
				b.WriteString(name)
				b.WriteString(": ")
				b.WriteString(v)
				b.WriteString("\r\n")
			}
		}
	}
	chunked := r.ContentLength < 0
	switch {
	case chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case r.ContentLength > 0 || r.Header["Content-Length"] != nil:
		b.WriteString("Content-Length: " + strconv.FormatInt(r.ContentLength, 10) + "\r\n")
	}
	b.WriteString("\r\n")
	if b.Flush() != nil || r.ContentLength == 0 {
		return
	}
	if err := sendBody(c, r.Body, chunked); err != nil {
		c.Close() // half a request is none
		io.CopyN(io.Discard, r.Body, lingerMost)
	}
}

func sendBody(c net.Conn, body io.Reader, chunked bool) error {
	lent := pieces.Get().(*[piece]byte)
	defer pieces.Put(lent)
	const room = 8 // for the size of a chunk
	for {
		n, err := body.Read(lent[room : piece-2])
		from, to := room, room+n
		if chunked && n > 0 {
			size := strconv.FormatInt(int64(n), 16) + "\r\n"
			from -= copy(lent[room-len(size):], size)
			to += copy(lent[to:], "\r\n")
		}
		if n > 0 {
			if _, err := c.Write(lent[from:to]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF && chunked:
			_, err = io.WriteString(c, "0\r\n\r\n")
			return err
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// head makes the fields of an answer those that HTTP/2 carries.
func (s *Server) head(to http.Header, resp *http.Response) {
	to["Content-Type"] = nil // not guessed where the answer has none
	for name, values := range resp.Header {
		if !hop[name] {
			to[name] = values
		}
	}
	if resp.ContentLength >= 0 && resp.Header["Content-Length"] != nil {
		to["Content-Length"] = resp.Header["Content-Length"]
	}
	if s.parting() {
		to.Set("Connection", "close") // which net/http tells the client as GOAWAY
	}
}

// writer writes to a stream, each write within a bound.
type writer struct {
	w      io.Writer
	ctl    *http.ResponseController
	within time.Duration
	until  time.Time
}

// copy passes an answer on; with at once, each part as soon as it comes. The client's
// window delays the reading, and so the worker.
func (o *writer) copy(body io.Reader, atOnce bool) error {
	lent := pieces.Get().(*[piece]byte)
	defer pieces.Put(lent)
	for {
		n, err := body.Read(lent[:])
		if now := time.Now(); o.until.Sub(now) < o.within*7/8 {
			o.until = now.Add(o.within)
			if err := o.ctl.SetWriteDeadline(o.until); err != nil {
				return err
			}
		}
		if n > 0 {
			if _, err := o.w.Write(lent[:n]); err != nil {
				return err
			}
		}
		if atOnce && n > 0 || err == io.EOF {
			if err := o.ctl.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
