package supervisor

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"roundhouse/balancer/control"
)

// A law: no healthy worker is called hung by a silence that its kind keeps while it
// computes. The doors say how long that may be, and a request that is answered clears it.
func TestSilenceIsNotHung(t *testing.T) {
	type look struct {
		silent time.Duration
		hung   bool // at once
		asked  int  // by then
	}
	f := func(name string, patience time.Duration, answers answers, looks ...look) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			s := &Supervisor{inbox: make(chan func(), 8), fleet: newFleet(), plan: &deployment{}, log: slog.New(slog.DiscardHandler), options: Options{HungAfter: 2 * time.Minute}}
			s.client = &http.Client{Transport: countRequests(&asked, answers)}
			s.ctx, s.cancel = context.WithCancel(t.Context())
			s.gate.doors = map[string]*door{"d": {state: &control.State{Workers: []control.WorkerState{{ID: "p/1", PatienceSeconds: patience.Seconds()}}}}}
			m := s.fleet.at("p/1")
			m.probe = &probe{url: "http://worker"}
			now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
			for i, l := range looks {
				p := progress{generation: 1, busy: true, since: now.Add(-l.silent)}
				if got := s.hung(m, p, now); got != l.hung {
					t.Errorf("%s, look %d: hung %t; want %t", name, i, got, l.hung)
				}
				time.Sleep(3 * time.Minute) // longer than a request may take
				synctest.Wait()
				s.drain()
				if asked != l.asked {
					t.Errorf("%s, look %d: asked %d times; want %d", name, i, asked, l.asked)
				}
			}
			s.cancel()
			s.group.Wait()
		})
	}
	good := answers(func(r *http.Request) (int, string, error) {
		if r.URL.Path == "/v1/models" {
			return 200, `{"data":[{"id":"m"}]}`, nil
		}
		return 200, `{"choices":[{"text":"a"}]}`, nil
	})
	hangs := answers(func(r *http.Request) (int, string, error) {
		if r.URL.Path == "/v1/models" {
			return good(r)
		}
		<-r.Context().Done()
		return 0, "", r.Context().Err()
	})
	f("it answers", 0, good, look{time.Minute, false, 0}, look{3 * time.Minute, false, 1}, look{3 * time.Minute, false, 2})
	f("it hangs", 0, hangs, look{time.Minute, false, 0}, look{3 * time.Minute, false, 1}, look{6 * time.Minute, true, 1})
	f("it gets on meanwhile", 0, hangs, look{3 * time.Minute, false, 1}, look{time.Second, false, 1}, look{3 * time.Minute, false, 2})
	f("a long prompt", 10*time.Minute, hangs, look{9 * time.Minute, false, 0}, look{11 * time.Minute, false, 1}, look{14 * time.Minute, true, 1})
}

// countRequests counts the completions that are asked for.
func countRequests(n *int, next answers) answers {
	return func(r *http.Request) (int, string, error) {
		if r.URL.Path == "/v1/completions" {
			*n++
		}
		return next(r)
	}
}
