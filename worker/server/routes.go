package server

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"path"
	"slices"
	"strings"

	"roundhouse/worker/api"
)

// handle adds a route, which /openapi.json will list.
func (s *Server) handle(pattern string, h http.HandlerFunc) {
	s.listed = append(s.listed, pattern)
	s.mux.HandleFunc(pattern, h)
}

func (s *Server) routes() {
	s.handle("GET /health", s.health)
	s.handle("GET /ping", s.health)
	s.handle("POST /ping", s.health)
	s.handle("GET /version", s.version)
	s.handle("GET /load", s.serverLoad)
	s.handle("GET /metrics", s.metrics)
	s.mux.HandleFunc("GET /metrics/", s.metrics)
	s.handle("GET /v1/models", s.models)
	s.handle("GET /v1/models/{id...}", s.oneModel)
	s.mux.HandleFunc("GET "+api.StatusPath, s.status)
	s.handle("POST /tokenize", s.tokenize)
	s.handle("POST /detokenize", s.detokenize)
	if s.cfg.TokenizerInfo != nil {
		s.handle("GET /tokenizer_info", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.cfg.TokenizerInfo) })
	}
	s.handle("GET /kv_event_sources", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, map[string]any{}) })
	s.handle("POST /invocations", s.invocations)
	s.operating()
	switch s.cfg.Kind {
	case Generates:
		s.generatingRoutes()
	case Transcribes:
		s.handle("POST /v1/audio/transcriptions", speaking(s, false))
		s.handle("POST /v1/audio/translations", speaking(s, true))
	default:
		s.pooledRoutes()
	}
	s.adapterRoutes()
	s.mux.HandleFunc("GET /openapi.json", s.openAPI)
	s.mux.HandleFunc("GET /docs", s.docs)
	s.mux.HandleFunc("GET /redoc", s.docs)
}

// generatingRoutes are those of a model that generates.
func (s *Server) generatingRoutes() {
	s.handle("POST /v1/chat/completions", route(s, s.newChat, writeError))
	s.handle("POST /v1/chat/completions/batch", route(s, s.newBatch, writeError))
	s.handle("POST /v1/completions", route(s, s.newCompletion, writeError))
	s.handle("POST /generative_scoring", route(s, s.newGenerativeScore, writeError))
	s.handle("POST /v1/responses", route(s, s.newResponse, writeError))
	s.handle("GET /v1/responses/{response_id}", s.retrieve)
	s.handle("DELETE /v1/responses/{response_id}", s.forget)
	s.handle("POST /v1/responses/{response_id}/cancel", s.cancelResponse)
	s.handle("POST /v1/messages", route(s, s.newMessages, refuseMessages))
	s.handle("POST /v1/messages/count_tokens", s.countTokens)
	for _, path := range []string{"/v1/chat/completions/render", "/v1/completions/render", "/v1/chat/completions/derender", "/v1/completions/derender", "/inference/v1/generate"} {
		s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, _ *http.Request) {
			writeError(w, &apiError{Message: "Scale-out endpoints are disabled, and this engine has none.", Type: "PermissionDeniedError", Code: http.StatusForbidden})
		})
	}
}

// unknown answers for a route that is not there, as FastAPI does: with the route
// itself where there is but a slash too many.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	probe := r.Clone(r.Context())
	if short := strings.TrimRight(r.URL.Path, "/"); short != r.URL.Path && short != "" {
		probe.URL.Path = short
		if s.serves(probe) != "" {
			if r.URL.RawQuery != "" {
				short += "?" + r.URL.RawQuery
			}
			w.Header().Set("Location", short)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		probe.URL.Path = r.URL.Path
	}
	if method := s.serves(probe); method != "" {
		w.Header().Set("Allow", method)
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"detail": "Method Not Allowed"})
		return
	}
	writeJSON(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
}

// serves is a method by which the path of probe is served; "": by none.
func (s *Server) serves(probe *http.Request) string {
	if !plainPath(probe.URL.Path) {
		return ""
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "" {
			return method
		}
	}
	return ""
}

// plainPath reports whether a path has no empty and no dotted elements: other paths are
// paths of their own, where Go's mux would send the client to the plain one.
func plainPath(p string) bool {
	return p == "/" || path.Clean(p) == strings.TrimSuffix(p, "/")
}

// openAPI lists the routes in OpenAPI's form. What goes in and out of them is
// vLLM's, and not repeated here.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	paths := map[string]map[string]any{}
	for _, pattern := range s.listed {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.ReplaceAll(path, "...}", "}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		operation := map[string]any{
			"summary": path, "operationId": strings.ToLower(method) + strings.Map(idLetter, path),
			"responses": map[string]any{"200": map[string]any{"description": "Successful Response"}},
		}
		var parameters []any
		for part := range strings.SplitSeq(path, "/") {
			if name, ok := strings.CutPrefix(part, "{"); ok {
				parameters = append(parameters, map[string]any{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": map[string]string{"type": "string"}})
			}
		}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		if method == http.MethodPost {
			operation["requestBody"] = map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": map[string]string{"type": "object"}}}}
		}
		paths[path][strings.ToLower(method)] = operation
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"openapi": "3.1.0", "info": map[string]string{"title": "Roundhouse worker", "version": s.cfg.Version}, "paths": paths,
	})
}

// idLetter keeps what may stand in an operation's id.
func idLetter(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return r
	}
	return '_'
}

// docs lists the routes for people.
func (s *Server) docs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprint(w, "<!doctype html><title>Roundhouse worker</title><h1>Routes</h1><p>As <a href=\"openapi.json\">openapi.json</a>.</p><ul>")
	for _, pattern := range slices.Sorted(slices.Values(s.listed)) {
		_, _ = fmt.Fprintf(w, "<li><code>%s</code>", html.EscapeString(pattern))
	}
	_, _ = fmt.Fprint(w, "</ul>")
}

// invocations is the one route that SageMaker knows: what a body has says which
// of the others it is meant for.
func (s *Server) invocations(w http.ResponseWriter, r *http.Request) {
	body, err := bodyOf(r, s.cfg.BodyLimit)
	if err != nil {
		writeError(w, err)
		return
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // what is no object has no fields
	for _, to := range []struct {
		fields []string
		path   string
	}{
		{[]string{"messages"}, "/v1/chat/completions"}, {[]string{"prompt"}, "/v1/completions"},
		{[]string{"query", "items", "label_token_ids"}, "/generative_scoring"},
		{[]string{"query", "documents"}, "/rerank"}, {[]string{"text_1", "text_2"}, "/score"}, {[]string{"queries", "documents"}, "/score"},
		{[]string{"input"}, "/v1/embeddings"}, {[]string{"input"}, "/classify"}, {[]string{"input"}, "/pooling"},
	} {
		has := fields != nil
		for _, f := range to.fields {
			has = has && fields[f] != nil
		}
		inner := withBody(r, to.path, body)
		if _, pattern := s.mux.Handler(inner); has && pattern != "" {
			s.mux.ServeHTTP(w, inner)
			return
		}
	}
	writeError(w, badValue("prompt", "Cannot find suitable handler for request: it has neither messages nor a prompt, nor what another route of this model takes."))
}
