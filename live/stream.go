package live

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"roundhouse/balancer/control"
)

// viewer is one stream. The hub writes messages until it closes them; why says then why.
type viewer struct {
	messages              chan packet
	why                   string
	requests, worker, log string
}

// packet is a message for a viewer, with the number of the event that it is; 0: it is
// none.
type packet struct {
	event uint64
	data  []byte
}

const (
	beat      = 15 * time.Second       // between two comments on a stream that says nothing
	paint     = 100 * time.Millisecond // between two messages of a log
	mostLog   = 500                    // lines in one of them
	mostLine  = 4096                   // bytes of a line
	mostTail  = 5000
	writeTime = 30 * time.Second // for a viewer to take one message
	catchUp   = 1000             // events that are sent again
)

// Stream serves GET /api/stream.
func (h *Hub) Stream(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	v := &viewer{messages: make(chan packet, mostBehind), requests: q.Get("requests"), worker: q.Get("worker"), log: q.Get("log")}
	rights, until := control.Admitted(r.Context())
	s := &stream{h: h, v: v, w: w, flush: http.NewResponseController(w), ctx: r.Context(), until: until}
	first, why := h.join(r.Context(), v)
	if why == "gone" {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if why != "" {
		s.write(message("bye", "", Bye{why}))
		return
	}
	defer h.leave(v)
	h.mu.Lock()
	alone := h.state.Supervisor == nil
	h.mu.Unlock()
	hello := Hello{Schema: 1, Version: h.options.Version, At: time.Now().UTC(), Rights: rights, Supervisor: !alone, Assets: h.options.Assets}
	if !s.write(message("hello", "", hello)) || !s.write(first) || !s.events(r) {
		return
	}
	lines, stop := s.openLog(q.Get("tail"))
	defer stop()
	s.run(lines)
}

// stream is a viewer's end of the line.
type stream struct {
	h     *Hub
	v     *viewer
	w     http.ResponseWriter
	flush *http.ResponseController
	ctx   context.Context
	until time.Time // when its rights end; zero: they do not
	after uint64    // the last event that it was sent
}

// stale is how old a state may be that a stream begins with, and patience how long a
// fresh one is waited for.
const (
	stale    = 3 * watched / 2
	patience = 5 * time.Second
)

// join takes a viewer in once there is something to see, and returns the state to begin
// with; or why it cannot.
func (h *Hub) join(ctx context.Context, v *viewer) (first []byte, why string) {
	defer h.wake()
	h.mu.Lock()
	state, next := h.state, h.seen
	h.mu.Unlock()
	if state == nil || time.Since(state.At) > stale {
		h.wake()
		var late <-chan time.Time
		if state != nil {
			late = time.After(patience)
		}
		select {
		case <-next:
		case <-late:
		case <-ctx.Done():
			return nil, "gone"
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
		return nil, "ending"
	case len(h.viewers) >= mostStreams:
		return nil, "full"
	}
	h.viewers[v] = struct{}{}
	if h.whole == nil {
		h.whole = message("state", "", h.state)
	}
	return h.whole, ""
}

// wake has the hub look soon: somebody looks on.
func (h *Hub) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

func (h *Hub) leave(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut(v, "")
}

// write sends what is ready; false: nobody takes it.
func (s *stream) write(data []byte) bool {
	_ = s.flush.SetWriteDeadline(time.Now().Add(writeTime)) // a connection that has none is none of the network's
	if _, err := s.w.Write(data); err != nil {
		return false
	}
	return s.flush.Flush() == nil
}

// events sends the events that were before: those after the last that the viewer has
// had, or the last few.
func (s *stream) events(r *http.Request) bool {
	after, limit := uint64(0), 10
	for _, given := range []string{r.URL.Query().Get("after"), r.Header.Get("Last-Event-ID")} {
		if n, err := strconv.ParseUint(given, 10, 64); err == nil && n > 0 {
			after, limit = n, catchUp
		}
	}
	old, err := s.h.options.Source.Events(after, limit)
	if err != nil {
		return s.write(message("gap", "", Gap{What: "events"}))
	}
	s.after = after
	for _, e := range old {
		if !s.event(e.ID, message("event", strconv.FormatUint(e.ID, 10), e)) {
			return false
		}
	}
	return true
}

// event sends one event, with what is missing before it marked.
func (s *stream) event(id uint64, data []byte) bool {
	if id <= s.after {
		return true // it came with the old ones
	}
	if s.after > 0 && id > s.after+1 {
		missed := id - s.after - 1
		if !s.write(message("gap", "", Gap{What: "events", Missed: &missed, From: s.after + 1, To: id - 1})) {
			return false
		}
	}
	s.after = id
	return s.write(data)
}

// run sends what comes until one side has enough.
func (s *stream) run(lines <-chan string) {
	still := time.NewTicker(beat)
	defer still.Stop()
	var paints <-chan time.Time
	if lines != nil {
		t := time.NewTicker(paint)
		defer t.Stop()
		paints = t.C
	}
	var over <-chan time.Time
	if !s.until.IsZero() {
		t := time.NewTimer(time.Until(s.until))
		defer t.Stop()
		over = t.C
	}
	for on := true; on; {
		select {
		case <-s.ctx.Done():
			return
		case <-over:
			s.write(message("bye", "", Bye{"expired"}))
			return
		case p, open := <-s.v.messages:
			switch {
			case !open:
				s.write(message("bye", "", Bye{s.v.why}))
				return
			case p.event > 0:
				on = s.event(p.event, p.data)
			default:
				on = s.write(p.data)
			}
		case <-paints:
			on = s.paint(lines)
		case <-still.C:
			on = s.write([]byte(": still here\n\n"))
		}
	}
}

// paint sends the lines of a log that have come.
func (s *stream) paint(lines <-chan string) bool {
	out := LogLines{Of: s.v.log, Lines: []string{}}
	for len(out.Lines) < mostLog {
		select {
		case line := <-lines:
			out.Lines = append(out.Lines, line)
			continue
		default:
		}
		break
	}
	return len(out.Lines) == 0 || s.write(message("log", "", out))
}

// openLog opens the log that is asked for; nil: none is, or there is none.
func (s *stream) openLog(given string) (<-chan string, func()) {
	if s.v.log == "" {
		return nil, func() {}
	}
	tail, err := strconv.Atoi(given)
	if err != nil || tail < 0 || tail > mostTail {
		tail = 200
	}
	ctx, stop := context.WithCancel(s.ctx)
	log, err := s.h.options.Source.Log(ctx, s.v.log, tail)
	if err != nil {
		s.write(message("log", "", LogLines{Of: s.v.log, Lines: []string{}, Error: err.Error()}))
		return nil, stop
	}
	lines, done := make(chan string, mostLog), make(chan struct{})
	go func() {
		defer close(done)
		readLines(ctx, log, lines)
	}()
	return lines, func() { stop(); log.Close(); <-done }
}

// readLines hands a log's lines over, each cut and without what would steer a terminal.
func readLines(ctx context.Context, log io.Reader, lines chan<- string) {
	in := bufio.NewReaderSize(log, mostLine)
	for {
		text, err := in.ReadSlice('\n')
		for rest := err; errors.Is(rest, bufio.ErrBufferFull); {
			_, rest = in.ReadSlice('\n') // the end of a line that is too long
			if err = nil; !errors.Is(rest, bufio.ErrBufferFull) {
				err = rest
			}
		}
		if len(text) > 0 {
			select {
			case lines <- Clean(strings.ToValidUTF8(string(text), "\uFFFD")):
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}
