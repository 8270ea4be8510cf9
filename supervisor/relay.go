package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs/workerid"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
)

// relay passes a question about one request on to the doors; the first that knows an
// answer gives it.
func (s *Supervisor) relay(w http.ResponseWriter, r *http.Request) {
	var doors []*door
	if err := s.ask(r.Context(), func() { doors = s.gate.living() }); err != nil {
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/api")
	status, data := http.StatusServiceUnavailable, []byte(`{"error":{"message":"no door answers","code":503}}`)
	for _, d := range doors {
		got, answer, err := d.ask(r.Context(), r.Method, path, nil)
		if err != nil {
			continue
		}
		if status, data = got, answer; got < http.StatusBadRequest {
			break
		}
	}
	if status == http.StatusNotFound && len(data) == 0 {
		fail(w, status, "no door knows it")
		return
	}
	if len(data) > 0 {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(data) // the asker may be gone
}

// mostTotals bounds what a door on another host tells at once.
const mostTotals = 16 << 20

// putTotals passes on to the doors here what one on another host tells: those are
// reached by their private sockets alone.
func (s *Supervisor) putTotals(w http.ResponseWriter, r *http.Request) {
	var t control.Totals
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &t)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "the body is not a door's totals: "+err.Error())
		return
	}
	var doors []*door
	if err := s.ask(r.Context(), func() { doors = s.gate.living() }); err != nil {
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	acks := make(chan control.TotalsAck, len(doors))
	for _, d := range doors {
		go func() {
			var ack control.TotalsAck
			if status, data, err := d.ask(r.Context(), http.MethodPut, "/totals", body); err != nil || status != http.StatusOK || json.Unmarshal(data, &ack) != nil {
				ack = control.TotalsAck{}
			}
			acks <- ack
		}()
	}
	var taken control.TotalsAck
	for range doors {
		if ack := <-acks; ack.Door != "" && (taken.Door == "" || ack.Door == t.Door) { // a door that told itself is to know it
			taken = ack
		}
	}
	if taken.Door == "" {
		fail(w, http.StatusServiceUnavailable, "no door answers")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(taken) // the asker may be gone
}

// serveEvents streams events: what is kept after ?after=N (at most ?limit=N,
// 1000 if not said), then what comes, unless ?follow=false.
func (s *Supervisor) serveEvents(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if id, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = id
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > journal.KeepEvents {
		limit = 1000
	}
	follow := r.URL.Query().Get("follow") != "false"
	incoming := make(chan journal.Event, 256)
	if follow {
		if err := s.ask(r.Context(), func() { s.events.watchers[incoming] = true }); err != nil {
			fail(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		defer s.tell(func() { delete(s.events.watchers, incoming) })
	}
	old, err := s.memory.journal.Events(after, limit) // beside the loop: there may be many
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	for _, e := range old {
		writeEvent(w, e)
		after = e.ID
	}
	if !follow {
		return
	}
	flush := http.NewResponseController(w)
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	for {
		if flush.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		case e := <-incoming:
			if e.ID > after { // else it came with the old ones
				writeEvent(w, e)
			}
		case <-beat.C:
			fmt.Fprint(w, ": still here\n\n")
		}
	}
}

func writeEvent(w http.ResponseWriter, e journal.Event) {
	data, err := json.Marshal(e)
	if err != nil {
		panic("BUG: event: " + err.Error())
	}
	fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, data)
}

// serveLogs sends what a worker has written: ?tail=N lines, ?follow=true to go
// on.
func (s *Supervisor) serveLogs(w http.ResponseWriter, r *http.Request) {
	id := workerid.Of(r.PathValue("pool"), r.PathValue("name"))
	var by *runner
	if err := s.ask(r.Context(), func() { by = s.runnerOf(id) }); err != nil || by == nil {
		fail(w, http.StatusNotFound, "worker "+strconv.Quote(id)+" is run by nobody here, or not configured")
		return
	}
	logs, err := by.driver.Logs(r.Context(), id, logOptions(r))
	sendLogs(w, logs, err)
}

// serveDoorLogs sends what this machine's doors have written, in the same way.
func (s *Supervisor) serveDoorLogs(w http.ResponseWriter, r *http.Request) {
	logs, err := s.children.OpenLog(r.Context(), "door", logOptions(r))
	if errors.Is(err, os.ErrNotExist) {
		err = errors.New("no door of this supervisor's has run here; those that others run keep their own logs")
	}
	sendLogs(w, logs, err)
}

func logOptions(r *http.Request) driver.LogOptions {
	tail, _ := strconv.Atoi(r.URL.Query().Get("tail")) // anything else is all of it
	return driver.LogOptions{Tail: tail, Follow: r.URL.Query().Get("follow") == "true"}
}

// sendLogs sends a log line by line as it comes.
func sendLogs(w http.ResponseWriter, logs io.ReadCloser, err error) {
	if err != nil {
		fail(w, http.StatusNotFound, err.Error())
		return
	}
	defer logs.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	flush := http.NewResponseController(w)
	lines := bufio.NewReader(logs)
	for {
		line, err := lines.ReadBytes('\n')
		if _, writeErr := w.Write(line); writeErr != nil || err != nil {
			return
		}
		if lines.Buffered() == 0 && flush.Flush() != nil {
			return
		}
	}
}
