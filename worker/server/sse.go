package server

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// events writes a stream of server-sent events, one flush each.
type events struct {
	w       http.ResponseWriter
	flush   http.Flusher
	started bool
}

func newEvents(w http.ResponseWriter) *events {
	f, _ := w.(http.Flusher)
	return &events{w: w, flush: f}
}

// start writes the head; before it an error can still have a status of its own.
func (e *events) start() {
	if e.started {
		return
	}
	e.started = true
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
}

// send writes one event.
func (e *events) send(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("BUG: an event cannot be written as JSON: %v", err))
	}
	return e.raw("", data)
}

// named writes one event with a name, as the Responses and Messages APIs do.
func (e *events) named(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("BUG: an event cannot be written as JSON: %v", err))
	}
	return e.raw(name, data)
}

func (e *events) raw(name string, data []byte) error {
	e.start()
	buf := make([]byte, 0, len(data)+len(name)+24)
	if name != "" {
		buf = append(append(append(buf, "event: "...), name...), '\n')
	}
	buf = append(append(append(buf, "data: "...), data...), '\n', '\n')
	if _, err := e.w.Write(buf); err != nil {
		return err
	}
	if e.flush != nil {
		e.flush.Flush()
	}
	return nil
}

// done ends a stream the way clients wait for.
func (e *events) done() { _ = e.raw("", []byte("[DONE]")) }

// fail tells of an error: with its own status while nothing was written yet,
// else as an event.
func (e *events) fail(err *apiError) {
	if err == nil {
		return
	}
	if !e.started {
		writeError(e.w, err)
		return
	}
	if e.send(map[string]*apiError{"error": err}) == nil {
		e.done()
	}
}
