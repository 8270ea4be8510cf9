package supervisor

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/live"
	"roundhouse/supervisor/core"
	"roundhouse/web"
)

// handler is the admin API.
func (s *Supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/workers", s.answer(func(*http.Request) (any, error) { return s.workers(), nil }))
	mux.HandleFunc("GET /api/pools", s.answer(func(*http.Request) (any, error) { return s.pools(), nil }))
	mux.HandleFunc("GET /api/rotations", s.answer(func(*http.Request) (any, error) { return s.rotations(), nil }))
	mux.HandleFunc("GET /api/schedule", s.answer(func(*http.Request) (any, error) { return s.schedules(), nil }))
	mux.HandleFunc("GET /api/version", s.answer(s.version))
	mux.HandleFunc("GET /api/config", s.answer(func(*http.Request) (any, error) { return s.plan.config.Redacted(), nil }))
	mux.HandleFunc("GET /api/config/changes", s.serveFileChanges)
	mux.HandleFunc("GET /api/events", s.serveEvents)
	mux.Handle("GET /api/diagnosis", s.health)
	mux.HandleFunc("GET /api/workers/{pool}/{name}/logs", s.serveLogs)
	mux.HandleFunc("GET /api/door/logs", s.serveDoorLogs)
	mux.HandleFunc("GET /api/stream", s.hub.Stream)
	mux.HandleFunc("GET /api/history", s.hub.History)
	mux.HandleFunc("GET /api/thresholds", live.Thresholds)
	mux.HandleFunc("GET /api/queue", s.serveQueue)
	mux.HandleFunc("GET /api/requests", s.serveRequests)
	mux.HandleFunc("GET /api/decisions", s.serveDecisions)
	mux.HandleFunc("POST "+control.TryPath, s.serveTry)
	mux.HandleFunc("DELETE /api/requests/{id}", s.relay)
	mux.HandleFunc("GET /api/decisions/{id}", s.relay)
	mux.HandleFunc("GET /api/canaries", s.answer(func(*http.Request) (any, error) {
		return control.CanariesShown{Schema: 1, At: time.Now().UTC(), Canaries: s.gate.trials()}, nil
	}))
	mux.HandleFunc("POST /api/canaries/{route}/{verb}", func(w http.ResponseWriter, r *http.Request) { commandCanary(s, w, r) })
	mux.HandleFunc("GET /api/plugins", s.servePlugins)
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	mux.HandleFunc("GET /api/usage", s.serveUsage)
	mux.HandleFunc("PUT /api/totals", s.putTotals)
	s.keysAPI().Mount(mux)
	mux.HandleFunc("POST /api/reload", s.reload)
	mux.HandleFunc("POST /api/workers/{pool}/{name}/profile", s.serveProfile)
	mux.HandleFunc("POST /api/workers/{pool}/{name}/{verb}", s.answer(s.commandWorker))
	mux.HandleFunc("POST /api/pools/{pool}/{verb}", s.answer(s.commandPool))
	mux.HandleFunc("POST /api/upgrade", s.upgrade)
	mux.HandleFunc("POST /api/schedule", s.answer(s.commandSchedule))
	for _, page := range []string{"GET /{$}", "GET /ui", "GET /ui/"} {
		mux.Handle(page, web.Handler())
	}
	return control.Guard(s.options.Config.Admin, timely(mux))
}

// fail answers with an error in words.
func fail(w http.ResponseWriter, status int, message string) { control.Fail(w, status, message) }

// FailWith answers with an error and the status that goes with it.
func FailWith(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, core.ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, core.ErrState):
		status = http.StatusConflict
	}
	fail(w, status, err.Error())
}

// answer has the loop make an answer, and sends it as JSON.
func (s *Supervisor) answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var v any
		var err error
		var data []byte
		if asked := s.ask(r.Context(), func() {
			if v, err = f(r); err == nil {
				s.flushEvents()             // whoever reads events after this answer finds what was commanded
				data, err = json.Marshal(v) // in the loop, whose state v may share
			}
		}); asked != nil {
			fail(w, http.StatusServiceUnavailable, asked.Error())
			return
		}
		switch {
		case err != nil:
			FailWith(w, err)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(append(data, '\n')) // the asker may be gone
		}
	}
}

func (s *Supervisor) version(*http.Request) (any, error) {
	return map[string]any{"schema": 1, "version": s.options.Version, "door": s.gate.shown().Version, "pid": os.Getpid()}, nil
}
