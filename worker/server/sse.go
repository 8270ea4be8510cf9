package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// writeWait is how long a client may take to accept one event. Who takes
// longer reads no more, and its stream ends.
const writeWait = 2 * time.Minute

// events writes a stream of server-sent events, one flush each.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	started bool
}

func newEvents(w http.ResponseWriter) *events {
	return &events{w: w, control: http.NewResponseController(w)}
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
	_ = e.control.SetWriteDeadline(time.Now().Add(writeWait)) // a writer without deadlines writes without
	if _, err := e.w.Write(buf); err != nil {
		return err
	}
	return e.control.Flush()
}

// rest takes the deadline off: the connection may serve another request.
func (e *events) rest() { _ = e.control.SetWriteDeadline(time.Time{}) }

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
