package extproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// mostPiece is the longest piece of a body that gateways take.
const mostPiece = 62_000

// stream is one request on its way through the picker. One goroutine reads what the
// gateway says; mu is held while it holds anything that the gateway lacks, but not
// while it waits for an endpoint.
type stream struct {
	s   *Server
	rpc grpc.ServerStream
	x   Exchange
	in  message

	modes    modes
	head     Head
	body     []byte
	answered bool // the request's head was, where its body is to come
	trailers bool // the request has some
	chosen   bool // the request has gone on
	rewrites bool // the answer's body is changed
	ended    bool // the answer is whole

	told chan (<-chan struct{}) // takes Choice.Told

	mu   sync.Mutex
	over bool // nothing may be sent any more
}

// errOver says that the picker's part is done.
var errOver = errors.New("over")

// process serves one request.
func (s *Server) process(rpc grpc.ServerStream) error {
	st := &stream{s: s, rpc: rpc, told: make(chan (<-chan struct{}), 1), modes: modes{bodyDuplex, bodyDuplex}}
	done := make(chan error, 1)
	go func() { done <- st.contained() }()
	var told <-chan struct{}
	for {
		select {
		case err := <-done:
			return err
		case told = <-st.told:
		case <-told:
			return st.part()
		}
	}
}

// part ends a request that was told to end.
func (st *stream) part() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	f := st.x.Part()
	var err error
	if f != nil && !st.over {
		err = st.rpc.SendMsg(&response{refusal: f})
	}
	st.over = true
	return err
}

// contained is run, and holds a panic to its request.
func (st *stream) contained() (err error) {
	how := Broken
	defer func() {
		if e := recover(); e != nil {
			st.s.log.Error("a picker's stream panicked", "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "the picker failed on this request")
		}
		if st.x != nil {
			st.x.End(how)
		}
	}()
	how, err = st.run(st.rpc.Context())
	return err
}

// run reads what the gateway says until there is no more to be seen.
func (st *stream) run(ctx context.Context) (Ending, error) {
	for {
		if err := st.rpc.RecvMsg(&st.in); err != nil {
			switch {
			case st.ended:
				return Whole, nil
			case errors.Is(err, io.EOF) && st.chosen && ctx.Err() == nil:
				return Unseen, nil // this gateway shows no answers
			case errors.Is(err, io.EOF) && st.x != nil && !st.chosen && len(st.body) > 0:
				return Broken, status.Error(codes.Canceled, "the request broke off")
			}
			return Broken, nil
		}
		how, err := st.take(ctx)
		switch {
		case err == errOver:
			return how, nil
		case err != nil:
			return how, err
		}
	}
}

// take answers one message.
func (st *stream) take(ctx context.Context) (Ending, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return Broken, errOver
	}
	m := &st.in
	switch {
	case m.kind == requestHeaders && st.x == nil:
		return st.requestHead(ctx)
	case st.x == nil:
		return Broken, status.Error(codes.InvalidArgument, "a request begins with its head")
	case m.kind == requestBody && !st.chosen:
		return st.requestBody()
	case m.kind == requestTrailers && !st.chosen:
		st.trailers = true
		return st.choose()
	case m.kind == requestBody && duplex(st.modes.request):
		return 0, nil // some gateways say the last piece twice
	case m.kind == requestBody || m.kind == requestTrailers:
		return 0, st.send(&response{to: m.kind})
	case !st.chosen:
		return Broken, status.Error(codes.InvalidArgument, "the answer came before the request was whole")
	case m.kind == responseHeaders:
		return st.answerHead()
	case m.kind == responseBody:
		return st.answerBody()
	case m.kind == responseTrailers:
		st.ended = true
		if err := st.send(&response{to: m.kind}); err != nil {
			return Whole, err
		}
		return Whole, errOver
	}
	return 0, nil
}

// requestHead takes the head of the request. Where the body goes through, the answer to
// it waits for the choice; where the gateway keeps the body, it must have one for each
// message at once; and where no body is to be seen whole, the head alone decides.
func (st *stream) requestHead(ctx context.Context) (Ending, error) {
	m := &st.in
	if m.modes != nil {
		st.modes = *m.modes
	}
	h := &st.head
	h.Subset, h.Narrowed, h.Unwatched = m.subset, m.hasSubset, st.s.o.Unwatched
	h.read(m.fields)
	h.Bodiless = m.end || st.modes.request == bodyNone || st.modes.request == bodyStreamed
	st.x = st.s.o.Host.Begin(ctx, h)
	switch {
	case h.Bodiless:
		return st.choose()
	case !duplex(st.modes.request):
		st.answered = true
		return 0, st.send(&response{to: requestHeaders})
	}
	return 0, nil
}

// requestBody takes a piece of the request's body.
func (st *stream) requestBody() (Ending, error) {
	m := &st.in
	if len(m.body) > 0 {
		if f := st.x.Reserve(int64(len(m.body))); f != nil {
			return st.refuse(f)
		}
		if st.body == nil && m.end {
			st.body = m.body // all of it, which is nobody else's
		} else {
			st.body = append(st.body, m.body...)
		}
	}
	if !m.end && duplex(st.modes.request) {
		return 0, nil
	}
	return st.choose()
}

// choose has the host choose, and sends the request on.
func (st *stream) choose() (Ending, error) {
	st.mu.Unlock()
	c, f := st.x.Choose(st.body)
	st.mu.Lock()
	if f != nil {
		return st.refuse(f)
	}
	if c == nil || st.over {
		return Broken, errOver // nobody waits for it
	}
	st.told <- c.Told
	if err := st.sendOn(c); err != nil {
		return Broken, err
	}
	st.body, st.chosen = nil, true
	st.x.GaveBack()
	if st.s.o.Unwatched {
		return Unseen, errOver
	}
	return 0, nil
}

// sendOn gives the request back, with its endpoint.
func (st *stream) sendOn(c *Choice) error {
	body := st.body
	if c.Body != nil {
		body = c.Body
	}
	r := &response{to: requestHeaders, endpoint: c.Endpoints, clear: true, remove: c.Remove,
		set: append([][2]string{{Destination, c.Endpoints}}, c.Set...)}
	if st.answered {
		r.to = requestBody
		if r.replaced = c.Body != nil; r.replaced {
			r.body = body
			r.set = append(r.set, [2]string{"content-length", strconv.Itoa(len(body))})
		}
		if st.trailers {
			r.to = requestTrailers
		}
		return st.send(r)
	}
	if err := st.send(r); err != nil || st.head.Bodiless {
		return err
	}
	for first := true; first || len(body) > 0; first = false {
		n := min(len(body), mostPiece)
		piece := &response{to: requestBody, streamed: true, body: body[:n], end: n == len(body) && !st.trailers}
		if body = body[n:]; n == 0 && st.trailers {
			break
		}
		if err := st.send(piece); err != nil {
			return err
		}
	}
	if st.trailers {
		return st.send(&response{to: requestTrailers})
	}
	return nil
}

// answerHead takes the head of the answer.
func (st *stream) answerHead() (Ending, error) {
	m := &st.in
	a := Answer{Served: m.served}
	for _, f := range m.fields {
		switch f[0] {
		case ":status":
			a.Status, _ = strconv.Atoi(f[1])
		case "content-type":
			a.Type = f[1]
		}
	}
	r := &response{to: responseHeaders}
	r.set, st.rewrites = st.x.Answered(&a)
	if st.rewrites = st.rewrites && st.modes.response != bodyNone; st.rewrites {
		r.remove = []string{"content-length"}
	}
	if err := st.send(r); err != nil {
		return Broken, err
	}
	st.ended = m.end || st.modes.response == bodyNone // the body of such ends with the stream
	if m.end {
		return Whole, errOver
	}
	return 0, nil
}

// answerBody takes a piece of the answer's body.
func (st *stream) answerBody() (Ending, error) {
	m := &st.in
	out := st.x.Piece(m.body, m.end)
	r := &response{to: responseBody, body: m.body, end: m.end, streamed: duplex(st.modes.response)}
	if st.rewrites {
		r.body, r.replaced = out, !r.streamed
	}
	if !r.streamed && !r.replaced {
		r.body = nil
	}
	st.ended = m.end
	for r.streamed && len(r.body) > mostPiece {
		piece := *r
		piece.body, piece.end, r.body = r.body[:mostPiece], false, r.body[mostPiece:]
		if err := st.send(&piece); err != nil {
			return Broken, err
		}
	}
	if r.streamed && len(r.body) == 0 && !r.end {
		return 0, nil
	}
	if err := st.send(r); err != nil {
		return Broken, err
	}
	if st.ended {
		return Whole, errOver
	}
	return 0, nil
}

// refuse answers in the place of a worker.
func (st *stream) refuse(f *Refusal) (Ending, error) {
	err := st.send(&response{refusal: f})
	st.over = true
	if err == nil {
		err = errOver
	}
	return Refused, err
}

// send tells the gateway something. st.mu is held.
func (st *stream) send(r *response) error {
	if st.over {
		return errOver
	}
	return st.rpc.SendMsg(r)
}

// read takes what the head says.
func (h *Head) read(fields [][2]string) {
	for _, f := range fields {
		switch f[0] {
		case ":method":
			h.Method = f[1]
		case ":path":
			h.Path, h.Query, _ = strings.Cut(f[1], "?")
		}
	}
	h.Fields = fields
	h.Objective = either(fields, objectiveFields)
	h.Fairness = either(fields, fairnessFields)
	h.Rewrite = either(fields, rewriteFields)
}

// either is the value of a field that has two names.
func either(fields [][2]string, names [2]string) (value string) {
	for _, f := range fields {
		if f[0] == names[0] && f[1] != "" {
			return f[1]
		}
		if f[0] == names[1] && value == "" {
			value = f[1]
		}
	}
	return value
}
