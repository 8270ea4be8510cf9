package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"roundhouse/worker"
	"roundhouse/worker/profile"
)

// abortPath is the route that ends others' requests: it needs the key where there
// is one, and development mode where there is none.
const abortPath = "/abort_requests"

// operating are the routes that act on the engine rather than ask it. As in
// vLLM most of them exist only in development mode; the front door never
// passes any of them on.
func (s *Server) operating() {
	if s.cfg.DevMode || len(s.keys) > 0 {
		s.handle("POST "+abortPath, s.abortRequests)
	}
	if p := s.cfg.Profiler; p != nil {
		s.handle("POST "+profile.StartPath, p.ServeStart)
		s.handle("POST "+profile.StopPath, p.ServeStop)
	}
	if !s.cfg.DevMode {
		return
	}
	ok := func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }
	s.handle("POST /reset_prefix_cache", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"success": s.cfg.Engine.ResetPrefixCache(r.Context())})
	})
	s.handle("POST /reset_mm_cache", func(w http.ResponseWriter, r *http.Request) { ok(w) })
	s.handle("POST /sleep", s.sleep)
	s.handle("POST /wake_up", s.wakeUp)
	s.handle("GET /is_sleeping", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"is_sleeping": s.cfg.Engine.Paused(r.Context())})
	})
	s.handle("POST /pause", func(w http.ResponseWriter, r *http.Request) {
		if err := s.pause(r); err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"status": "paused"})
	})
	s.handle("POST /resume", func(w http.ResponseWriter, r *http.Request) {
		s.cfg.Engine.Resume(r.Context())
		writeJSON(w, http.StatusOK, map[string]string{"status": "resumed"})
	})
	s.handle("GET /is_paused", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"is_paused": s.cfg.Engine.Paused(r.Context())})
	})
	s.handle("GET /server_info", func(w http.ResponseWriter, r *http.Request) {
		c := s.cfg.Engine.Config()
		writeJSON(w, http.StatusOK, map[string]any{
			"version": s.cfg.Version, "models": s.cfg.Models, "max_model_len": s.cfg.MaxModelLen,
			"max_num_seqs": c.Limits.Seqs, "max_num_batched_tokens": c.Limits.Tokens,
		})
	})
}

// sleep holds the engine; at levels 1 and 2 it gives weights and KV cache back,
// and both are read from the model's files at the waking. Requests under way
// are aborted first, unless mode says to wait for them or to keep them.
func (s *Server) sleep(w http.ResponseWriter, r *http.Request) {
	level := 1
	if v := r.URL.Query().Get("level"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 2 {
			writeError(w, badValue("level", "level must be 0, 1 or 2, got %.32q", v))
			return
		}
		level = n
	}
	if err := s.pause(r); err != nil {
		writeError(w, err)
		return
	}
	if level > 0 {
		if err := s.cfg.Engine.Sleep(r.Context(), level); err != nil {
			s.operationFailed(w, "sleep", err)
			return
		}
	}
	w.WriteHeader(http.StatusOK)
}

// pause holds the engine as mode says: requests under way are aborted, waited for
// or kept.
func (s *Server) pause(r *http.Request) *apiError {
	switch mode := r.URL.Query().Get("mode"); mode {
	case "", "abort":
		s.cfg.Engine.Pause(r.Context(), true)
	case "wait":
		if !s.cfg.Engine.PauseIdle(r.Context()) {
			return badValue("mode", "the engine was resumed before its requests had ended")
		}
	case "keep":
		s.cfg.Engine.Pause(r.Context(), false)
	default:
		return badValue("mode", "mode must be abort, wait or keep, got %.32q", mode)
	}
	return nil
}

// wakeUp brings weights and KV cache back. Both are one here: a part of them
// cannot be woken.
func (s *Server) wakeUp(w http.ResponseWriter, r *http.Request) {
	tags := r.URL.Query()["tags"]
	if len(tags) > 0 && !(slices.Contains(tags, "weights") && slices.Contains(tags, "kv_cache")) {
		writeError(w, badValue("tags", "`tags` other than weights and kv_cache together are not supported by this engine; leave them out"))
		return
	}
	if err := s.cfg.Engine.WakeUp(r.Context()); err != nil {
		s.operationFailed(w, "wake_up", err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// operationFailed tells of what an operator asked for and could not have; the
// log has the reason.
func (s *Server) operationFailed(w http.ResponseWriter, what string, err error) {
	if errors.Is(err, worker.ErrCannotSleep) {
		writeError(w, badValue("", "%v", err))
		return
	}
	if errors.Is(err, worker.ErrNoRoom) {
		writeError(w, internal(err.Error()))
		return
	}
	s.cfg.Log.Error("an operation failed", "operation", what, "error", err)
	writeError(w, internal(what+" failed; the worker's log says why"))
}

// abortRequests ends the requests that the body names, all when it names none.
func (s *Server) abortRequests(w http.ResponseWriter, r *http.Request) {
	var f struct {
		IDs []string `json:"request_ids"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.BodyLimit))
	if err != nil || len(strings.TrimSpace(string(body))) > 0 && json.Unmarshal(body, &f) != nil {
		writeError(w, badShape("json_invalid", "body", "want {\"request_ids\": [..]}"))
		return
	}
	s.cfg.Engine.AbortRequests(r.Context(), f.IDs)
	w.WriteHeader(http.StatusOK)
}
