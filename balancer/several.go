package balancer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"roundhouse/balancer/control"
)

// The bounds of a request that is sent several times at once.
const (
	mostTimes    = 64
	mostRepeated = 1 << 20 // bytes of its body, which is held
)

// piece is what is told of one of them: first where it went, then each event of its
// answer, then its end.
type piece struct {
	N      int     `json:"n"`
	ID     *string `json:"id,omitempty"`
	Worker string  `json:"worker,omitempty"`
	Status int     `json:"status,omitempty"`
	Data   *string `json:"data,omitempty"`
	Ended  bool    `json:"ended,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// several has next answer a request as often as `times` asks, all at once, and sends
// the answers as one stream of server-sent events. A browser has six connections to an
// address: sixteen requests of its own would wait for each other there, not at the door.
func several(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.Query().Get("times")
		if asked == "" {
			next.ServeHTTP(w, r)
			return
		}
		times, err := strconv.Atoi(asked)
		if err != nil || times < 1 || times > mostTimes {
			control.Fail(w, http.StatusBadRequest, fmt.Sprintf("times: %q: give 1 to %d", asked, mostTimes))
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostRepeated))
		if err != nil {
			control.Fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a request that is sent several times may have %d bytes: %v", mostRepeated, err))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		out := &merged{to: w}
		var all sync.WaitGroup
		for n := range times {
			one := r.Clone(r.Context())
			one.URL.RawQuery = ""
			one.Body, one.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			all.Go(func() {
				p := &part{n: n, out: out, header: http.Header{}}
				p.end(toEnd(next, p, one))
			})
		}
		all.Wait()
	})
}

// toEnd has a request answered, and reports whether the answer came to its end: a
// proxy panics where what it passes on breaks off.
func toEnd(next http.Handler, w http.ResponseWriter, r *http.Request) (ended bool) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			panic(v)
		}
	}()
	next.ServeHTTP(w, r)
	return true
}

// merged is the one stream that all answers go to.
type merged struct {
	mu sync.Mutex
	to http.ResponseWriter
}

func (m *merged) tell(p piece) {
	data, err := json.Marshal(p)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = fmt.Fprintf(m.to, "data: %s\n\n", data) // the asker may be gone; its context ends the rest
	_ = http.NewResponseController(m.to).Flush()
}

// part is the answer to one of the requests, as its handler writes it.
type part struct {
	n      int
	out    *merged
	header http.Header
	status int
	rest   []byte // of an event that has not come whole, or of an answer that is none
}

func (p *part) Header() http.Header { return p.header }

func (p *part) WriteHeader(status int) {
	if p.status != 0 || status < 200 {
		return
	}
	p.status = status
	id := p.header.Get("X-Request-Id")
	p.out.tell(piece{N: p.n, ID: &id, Worker: p.header.Get(pinField), Status: status})
}

// Flush is for those who stream: every event is sent as soon as it is whole.
func (p *part) Flush() {}

func (p *part) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	p.rest = append(p.rest, b...)
	for p.status == http.StatusOK {
		event, after, whole := bytes.Cut(p.rest, []byte("\n\n"))
		if !whole {
			break
		}
		p.rest = after
		if data, is := bytes.CutPrefix(event, []byte("data:")); is {
			text := string(bytes.TrimSpace(data))
			p.out.tell(piece{N: p.n, Data: &text})
		}
	}
	return len(b), nil
}

// end tells how it ended: an answer that is no success in the words of its error.
func (p *part) end(whole bool) {
	last := piece{N: p.n, Ended: true}
	switch {
	case !whole:
		last.Error = "the answer broke off"
	case p.status != http.StatusOK:
		var refused struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if last.Error = fmt.Sprintf("status %d", p.status); json.Unmarshal(p.rest, &refused) == nil && refused.Error.Message != "" {
			last.Error = refused.Error.Message
		}
	}
	p.out.tell(last)
}
