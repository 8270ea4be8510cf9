package supervisor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
)

// answersOfDoors asks all doors the same at once. One that does not answer, or knows nothing of
// it, is left out.
func answersOfDoors[T any](ctx context.Context, s *Supervisor, path string) (answers []T) {
	var doors []*door
	if err := s.ask(ctx, func() { doors = s.gate.living() }); err != nil {
		return nil
	}
	slices.SortFunc(doors, func(a, b *door) int { return len(a.id) - len(b.id) })
	got := make([]*T, len(doors))
	var all sync.WaitGroup
	for i, d := range doors {
		all.Go(func() {
			var answer T
			if d.get(ctx, path, &answer) == nil {
				got[i] = &answer
			}
		})
	}
	all.Wait()
	for _, answer := range got {
		if answer != nil {
			answers = append(answers, *answer)
		}
	}
	return answers
}

// send answers with what doors have said, or that none did.
func send[T any](w http.ResponseWriter, answers []T, joined any) {
	if len(answers) == 0 {
		fail(w, http.StatusServiceUnavailable, "no door answers")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(joined) // the asker may be gone
}

// serveRequests lists what is in flight at all doors, or what has ended there.
func (s *Supervisor) serveRequests(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("ended") != "1" {
		serveInFlight(s, w, r, "/requests")
		return
	}
	f := control.ParseEnded(r.URL.Query())
	answers := answersOfDoors[control.EndedRequests](r.Context(), s, "/requests?"+r.URL.RawQuery)
	out := control.EndedRequests{Schema: 1, Ended: []control.Ended{}}
	for _, a := range answers {
		out.At = a.At
		out.Ended = append(out.Ended, a.Ended...)
	}
	out.Ended = newest(out.Ended, f.Limit, func(e control.Ended) time.Time { return e.End })
	send(w, answers, out)
}

func (s *Supervisor) serveQueue(w http.ResponseWriter, r *http.Request) {
	serveInFlight(s, w, r, "/queue")
}

// serveInFlight joins the doors' lists.
func serveInFlight(s *Supervisor, w http.ResponseWriter, r *http.Request, path string) {
	answers := answersOfDoors[[]control.InFlight](r.Context(), s, path)
	out := []control.InFlight{}
	for _, list := range answers {
		out = append(out, list...)
	}
	send(w, answers, out)
}

// serveDecisions lists the last choices of all doors.
func (s *Supervisor) serveDecisions(w http.ResponseWriter, r *http.Request) {
	f := control.ParseDecisions(r.URL.Query())
	answers := answersOfDoors[control.Decisions](r.Context(), s, "/decisions?"+r.URL.RawQuery)
	out := control.Decisions{Schema: 1, Decisions: []control.Decision{}}
	for _, a := range answers {
		out.At = a.At
		out.Decisions = append(out.Decisions, a.Decisions...)
	}
	out.Decisions = newest(out.Decisions, f.Limit, func(d control.Decision) time.Time { return d.At })
	send(w, answers, out)
}

// newest sorts a list of several doors by time, the latest first, and cuts it.
func newest[T any](list []T, limit int, at func(T) time.Time) []T {
	slices.SortStableFunc(list, func(a, b T) int { return at(b).Compare(at(a)) })
	return list[:min(len(list), limit)]
}

// serveTry sends a request on to a door that takes some.
func (s *Supervisor) serveTry(w http.ResponseWriter, r *http.Request) {
	var to *door
	if err := s.ask(r.Context(), func() {
		for _, d := range s.gate.living() {
			if d.state != nil && d.state.Phase == phase.Ready && !d.leaving && (to == nil || d.id < to.id) {
				to = d
			}
		}
	}); err != nil {
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if to == nil {
		fail(w, http.StatusServiceUnavailable, "no door takes requests now")
		return
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "door"
			r.Out.URL.Path = r.In.URL.Path[len("/api"):]
			r.Out.URL.RawPath = ""
			r.Out.Header.Del("Authorization") // the admin API's, which is nothing to a door
		},
		Transport:     to.client.Transport,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			fail(w, http.StatusBadGateway, "the door gave no answer: "+err.Error())
		},
	}
	proxy.ServeHTTP(w, r)
}
