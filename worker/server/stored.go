package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"roundhouse/worker/api"
)

// Bounds of what is kept of the Responses API.
const (
	storedBytes  = 64 << 20       // of all answers together
	storedTime   = 24 * time.Hour // of one, from its last use on
	storedEach   = 8 << 20        // of one
	backgrounds  = 256            // answers that are under way with nobody waiting
	eventsBuffer = 4 << 20        // bytes of events that a stream in the background may leave unread
)

// stored are the answers of the Responses API that clients may come back to:
// to go on from, to poll, to cancel. Each belongs to the key that asked. The
// oldest go when there are too many.
type stored struct {
	mu    sync.Mutex
	by    map[string]*storedAnswer
	order []string // ids, stored first first
	bytes int
	under int // answers in the background
	now   func() time.Time
}

// storedAnswer is one of them. Fields but the first are guarded by stored.mu.
type storedAnswer struct {
	owner    string
	out      json.RawMessage
	status   string
	messages []json.RawMessage // what was asked and answered, for who goes on from it
	used     time.Time
	size     int
	cancel   context.CancelFunc // nil: nothing is under way
	events   []storedEvent      // of a stream in the background
	more     chan struct{}      // closed when there are more events or the status changes
}

type storedEvent struct {
	kind string
	data json.RawMessage
}

func newStored() *stored { return &stored{by: map[string]*storedAnswer{}, now: time.Now} }

// mayRun refuses an answer in the background where there are too many.
func (st *stored) mayRun(background bool) *apiError {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !background || st.under < backgrounds {
		return nil
	}
	return &apiError{Message: "Too many responses are being made in the background; try again later.", Type: "RateLimitError", Param: "background", Code: http.StatusTooManyRequests}
}

// owner is whose answers a request may see: those of its key, or of the client
// that a door of ours names.
func (s *Server) owner(r *http.Request) string {
	name := r.Header.Get("Authorization")
	if key := r.Header.Get("X-Api-Key"); name == "" {
		name = key
	}
	if safeID.MatchString(r.Header.Get(api.HeaderDoor)) {
		name += "\x00" + r.Header.Get(api.HeaderOwner)
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

func responseNotFound(id string) *apiError {
	return &apiError{Message: "Response with id '" + printable(id, 128) + "' not found.", Type: "invalid_request_error", Param: "response_id", Code: http.StatusNotFound}
}

// find returns an answer that is the owner's and not too old. The caller holds
// st.mu.
func (st *stored) find(id, owner string) (*storedAnswer, *apiError) {
	a, ok := st.by[id]
	if !ok || a.owner != owner || a.cancel == nil && st.now().Sub(a.used) > storedTime {
		return nil, responseNotFound(id)
	}
	a.used = st.now()
	return a, nil
}

// get returns what is known of an answer.
func (st *stored) get(id, owner string) (*storedAnswer, *apiError) {
	st.mu.Lock()
	defer st.mu.Unlock()
	a, err := st.find(id, owner)
	if err != nil {
		return nil, err
	}
	if a.cancel != nil {
		return nil, badValue("previous_response_id", "Response with id '%s' is not complete yet.", printable(id, 128))
	}
	copied := *a
	return &copied, nil
}

func (a *storedAnswer) history() []json.RawMessage { return a.messages }

// put keeps an answer, in place of what is known under its id.
func (st *stored) put(id string, a *storedAnswer) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.replace(id, a)
}

// replace does put's work. The caller holds st.mu.
func (st *stored) replace(id string, a *storedAnswer) {
	a.size = len(a.out) + len(id)
	for _, m := range a.messages {
		a.size += len(m)
	}
	for _, e := range a.events {
		a.size += len(e.data)
	}
	st.drop(id)
	a.used = st.now()
	if a.size > storedEach && a.cancel == nil {
		return
	}
	st.by[id] = a
	st.order = append(st.order, id)
	st.bytes += a.size
	st.makeRoom()
}

// makeRoom forgets what is too old or too much, never what is under way.
func (st *stored) makeRoom() {
	for i := 0; i < len(st.order); {
		a := st.by[st.order[i]]
		old := st.now().Sub(a.used) > storedTime
		if a.cancel != nil || !old && st.bytes <= storedBytes {
			i++
			continue
		}
		st.drop(st.order[i])
	}
}

// drop forgets an answer. The caller holds st.mu.
func (st *stored) drop(id string) {
	a, ok := st.by[id]
	if !ok {
		return
	}
	delete(st.by, id)
	st.bytes -= a.size
	for i, o := range st.order {
		if o == id {
			st.order = append(st.order[:i], st.order[i+1:]...)
			break
		}
	}
}

// retrieve answers GET /v1/responses/{id}, as a stream where one was asked for.
func (s *Server) retrieve(w http.ResponseWriter, r *http.Request) {
	id, owner := r.PathValue("response_id"), s.owner(r)
	if stream, _ := strconv.ParseBool(r.URL.Query().Get("stream")); stream {
		after := -1
		if v := r.URL.Query().Get("starting_after"); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				writeError(w, badShape("int_parsing", "query.starting_after", "Input should be a valid integer"))
				return
			}
			after = n
		}
		ev := newEvents(w)
		defer ev.rest()
		s.stored.follow(r.Context(), id, owner, after, ev)
		return
	}
	s.stored.mu.Lock()
	a, err := s.stored.find(id, owner)
	var out json.RawMessage
	if err == nil {
		out = a.out
	}
	s.stored.mu.Unlock()
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// forget answers DELETE /v1/responses/{id}.
func (s *Server) forget(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("response_id")
	s.stored.mu.Lock()
	a, err := s.stored.find(id, s.owner(r))
	if err == nil {
		if a.cancel != nil {
			a.cancel()
		}
		s.stored.drop(id)
	}
	s.stored.mu.Unlock()
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
}

// cancelResponse answers POST /v1/responses/{id}/cancel.
func (s *Server) cancelResponse(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("response_id")
	s.stored.mu.Lock()
	a, err := s.stored.find(id, s.owner(r))
	var out json.RawMessage
	switch {
	case err != nil:
	case a.cancel == nil && a.status != "cancelled":
		err = &apiError{Message: "Cannot cancel a synchronous response.", Type: "invalid_request_error", Param: "response_id", Code: http.StatusBadRequest}
	default:
		if a.cancel != nil {
			a.cancel()
			a.setStatus("cancelled")
		}
		out = a.out
	}
	s.stored.mu.Unlock()
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// setStatus changes what is told of an answer that is under way.
func (a *storedAnswer) setStatus(status string) {
	a.status = status
	var out map[string]json.RawMessage
	if json.Unmarshal(a.out, &out) != nil {
		panic("BUG: a stored answer is not JSON")
	}
	out["status"] = marshalled(status)
	a.out = marshalled(out)
	a.tell()
}

// tell wakes who follows.
func (a *storedAnswer) tell() {
	if a.more != nil {
		close(a.more)
		a.more = make(chan struct{})
	}
}
