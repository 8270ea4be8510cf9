package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// keep stores an answer that was given, unless the client wants it forgotten.
func (x *response) keep(r *http.Request) {
	if !value(x.f.Store, true) {
		return
	}
	x.s.stored.put(x.id, &storedAnswer{owner: x.s.owner(r), out: marshalled(x.out), status: x.out.Status, messages: x.exchange()})
}

// exchange is the conversation with the answer at its end, without the
// instructions, which hold for one answer.
func (x *response) exchange() []json.RawMessage {
	var list []json.RawMessage
	messages, _, err := x.f.conversation()
	if err != nil {
		panic("BUG: an input that was read cannot be read again")
	}
	list = append(list, x.f.history...)
	for _, m := range messages {
		list = append(list, marshalled(m))
	}
	answer := chatMessage{Role: "assistant", Content: x.said.content.String()}
	if x.said.thought {
		answer.Reasoning = new(x.said.reasoning.String())
	}
	for _, c := range x.said.made() {
		answer.Calls = append(answer.Calls, chatCall{ID: c.ID, Type: "function", Function: map[string]any{"name": c.Function.Name, "arguments": c.Function.Arguments}})
	}
	return append(list, marshalled(answer))
}

// background has an answer made with nobody waiting, and returns what is known
// of it at once.
func (s *Server) background(x *response, r *http.Request) json.RawMessage {
	st, owner := s.stored, s.owner(r)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	x.out.Status = "queued"
	first := marshalled(x.out)
	a := &storedAnswer{owner: owner, out: first, status: "queued", cancel: cancel, more: make(chan struct{})}
	st.mu.Lock()
	st.replace(x.id, a)
	st.under++
	st.mu.Unlock()
	go func() {
		defer cancel()
		x.inBackground(ctx, a)
	}()
	return first
}

// errTooMuch ends a stream in the background that nobody reads.
var errTooMuch = errors.New("the events of this answer are more than is kept")

// inBackground makes the answer and stores what it came to.
func (x *response) inBackground(ctx context.Context, a *storedAnswer) {
	st, held := x.s.stored, 0
	x.s.load.Add(1)
	defer x.s.load.Add(-1)
	failed := x.streamTo(ctx, func(kind string, fields any) error {
		data := marshalled(fields)
		st.mu.Lock()
		defer st.mu.Unlock()
		if a.status == "queued" {
			a.setStatus("in_progress")
		}
		if !x.f.Stream {
			return nil
		}
		if held += len(data); held > eventsBuffer {
			return errTooMuch
		}
		a.events = append(a.events, storedEvent{kind, data})
		a.tell()
		return nil
	})
	st.mu.Lock()
	defer st.mu.Unlock()
	st.under--
	a.cancel = nil
	switch {
	case a.status == "cancelled":
	case failed != nil || ctx.Err() != nil:
		a.setStatus("failed")
	default:
		a.out, a.status, a.messages = marshalled(x.out), x.out.Status, x.exchange()
	}
	a.tell()
	if _, there := st.by[x.id]; there { // not deleted meanwhile
		st.replace(x.id, a)
	}
}

// follow writes the events of an answer that was asked for as a stream in the
// background, from the one after the number given on, until its end.
func (st *stored) follow(ctx context.Context, id, owner string, after int, ev *events) {
	next := after + 1
	for {
		st.mu.Lock()
		a, err := st.find(id, owner)
		if err == nil && a.more == nil {
			err = badValue("stream", "Response with id '%s' was not made as a stream in the background.", printable(id, 128))
		}
		if err != nil {
			st.mu.Unlock()
			ev.fail(err)
			return
		}
		fresh, more, over := a.events[min(next, len(a.events)):], a.more, a.cancel == nil
		st.mu.Unlock()
		for _, e := range fresh {
			if ev.raw(e.kind, e.data) != nil {
				return
			}
		}
		next += len(fresh)
		if over {
			ev.start()
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}
