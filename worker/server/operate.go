package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// operating are the routes that act on the engine rather than ask it. As in
// vLLM most of them exist only in development mode; the front door never
// passes any of them on.
func (s *Server) operating() {
	s.mux.HandleFunc("POST /abort_requests", s.abortRequests)
	if !s.cfg.DevMode {
		return
	}
	ok := func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }
	s.mux.HandleFunc("POST /reset_prefix_cache", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"success": s.cfg.Engine.ResetPrefixCache(r.Context())})
	})
	s.mux.HandleFunc("POST /reset_mm_cache", func(w http.ResponseWriter, r *http.Request) { ok(w) })
	s.mux.HandleFunc("POST /sleep", s.sleep)
	s.mux.HandleFunc("POST /wake_up", func(w http.ResponseWriter, r *http.Request) { s.cfg.Engine.Resume(r.Context()); ok(w) })
	s.mux.HandleFunc("GET /is_sleeping", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"is_sleeping": s.cfg.Engine.Paused(r.Context())})
	})
	s.mux.HandleFunc("POST /pause", func(w http.ResponseWriter, r *http.Request) {
		s.cfg.Engine.Pause(r.Context(), r.URL.Query().Get("mode") != "keep")
		writeJSON(w, http.StatusOK, map[string]string{"status": "paused"})
	})
	s.mux.HandleFunc("POST /resume", func(w http.ResponseWriter, r *http.Request) {
		s.cfg.Engine.Resume(r.Context())
		writeJSON(w, http.StatusOK, map[string]string{"status": "resumed"})
	})
	s.mux.HandleFunc("GET /is_paused", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"is_paused": s.cfg.Engine.Paused(r.Context())})
	})
	s.mux.HandleFunc("GET /server_info", func(w http.ResponseWriter, r *http.Request) {
		c := s.cfg.Engine.Config()
		writeJSON(w, http.StatusOK, map[string]any{
			"version": s.cfg.Version, "models": s.cfg.Models, "max_model_len": s.cfg.MaxModelLen,
			"max_num_seqs": c.Limits.Seqs, "max_num_batched_tokens": c.Limits.Tokens,
		})
	})
}

// sleep holds the engine and forgets its prefixes. Requests under way are
// aborted first, unless mode says to wait for them or to keep them. The
// weights stay where they are: a sleeping worker computes nothing, and its
// memory is given back by stopping it.
func (s *Server) sleep(w http.ResponseWriter, r *http.Request) {
	switch level := r.URL.Query().Get("level"); level {
	case "", "1", "2", "0":
	default:
		writeError(w, badValue("level", "level must be 0, 1 or 2, got %.32q", level))
		return
	}
	switch mode := r.URL.Query().Get("mode"); mode {
	case "", "abort":
		s.cfg.Engine.Pause(r.Context(), true)
	case "wait":
		s.cfg.Engine.WaitIdle(r.Context())
		s.cfg.Engine.Pause(r.Context(), false)
	case "keep":
		s.cfg.Engine.Pause(r.Context(), false)
	default:
		writeError(w, badValue("mode", "mode must be abort, wait or keep, got %.32q", mode))
		return
	}
	s.cfg.Engine.ResetPrefixCache(r.Context())
	w.WriteHeader(http.StatusOK)
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

// absent answers for the routes of models of other kinds than the one that is
// served.
func (s *Server) absent() {
	for path, api := range map[string]string{
		"/v1/embeddings": "Embeddings", "/v2/embed": "Embeddings", "/pooling": "Pooling", "/classify": "Classification",
		"/score": "Score", "/v1/score": "Score", "/rerank": "Rerank (Score)", "/v1/rerank": "Rerank (Score)", "/v2/rerank": "Rerank (Score)",
		"/v1/audio/transcriptions": "Transcriptions", "/v1/audio/translations": "Translations",
		"/v1/chat/completions": "Chat Completions", "/v1/completions": "Completions", "/v1/responses": "Responses", "/v1/messages": "Messages",
	} {
		if s.has(path) {
			continue
		}
		s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			writeError(w, notImplemented("The model does not support %s API", api))
		})
	}
	for _, path := range []string{"/v1/load_lora_adapter", "/v1/unload_lora_adapter"} {
		s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			writeError(w, notImplemented("adapters are not supported by this engine; merge the adapter into the model and serve the result"))
		})
	}
}

// has says whether the model's kind has a route.
func (s *Server) has(path string) bool {
	r, err := http.NewRequest(http.MethodPost, path, nil)
	if err != nil {
		panic("BUG: a route is not a path")
	}
	_, pattern := s.mux.Handler(r)
	return pattern != ""
}
