package server

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"roundhouse/worker"
)

// adapterRoutes are those that load and unload adapters while the worker runs.
// As in vLLM there are none unless the environment allows it; the front door
// passes neither on.
func (s *Server) adapterRoutes() {
	routes := map[string]http.HandlerFunc{"POST /v1/load_lora_adapter": s.loadAdapter, "POST /v1/unload_lora_adapter": s.unloadAdapter}
	for path, serve := range routes {
		if !s.cfg.LoadAdapters || s.cfg.Engine.AdapterRoom() == 0 {
			serve = func(w http.ResponseWriter, r *http.Request) {
				writeError(w, notFound("", "adapters cannot be loaded while this worker runs; start it with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"))
			}
		}
		s.handle(path, serve)
	}
}

// adapterCard is what /v1/models says of an adapter.
func (s *Server) adapterCard(a *worker.Adapter) modelCard {
	c, parent := s.card(a.Name), a.Base
	if parent == "" {
		parent = s.cfg.Models[0]
	}
	c.Root, c.Parent, c.Created = a.Path, &parent, a.Created
	return c
}

// safeName reports whether a name can stand in logs, and in a metric's list.
func safeName(name string) bool {
	return len(name) <= 256 && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == ',' || !unicode.IsPrint(r) })
}

// invalidInput is vLLM's error of a request about adapters.
func invalidInput(message string) *apiError {
	return &apiError{Message: message, Type: "InvalidUserInput", Code: http.StatusBadRequest}
}

func (s *Server) loadAdapter(w http.ResponseWriter, r *http.Request) {
	var f struct {
		Name    string `json:"lora_name"`
		Path    string `json:"lora_path"`
		Base    string `json:"base_model_name"`
		Inplace bool   `json:"load_inplace"`
		Experts bool   `json:"is_3d_lora_weight"`
	}
	if err := readBody(r, s.cfg.BodyLimit, &f); err != nil {
		writeError(w, err)
		return
	}
	switch {
	case f.Name == "" || f.Path == "":
		writeError(w, invalidInput("Both 'lora_name' and 'lora_path' must be provided."))
		return
	case !safeName(f.Name):
		writeError(w, invalidInput("'lora_name' must have at most 256 bytes, all of them printable text without commas."))
		return
	case slices.Contains(s.cfg.Models, f.Name):
		writeError(w, invalidInput("'"+f.Name+"' is the name of the model itself."))
		return
	case f.Experts:
		writeError(w, badValue("is_3d_lora_weight", "`is_3d_lora_weight` is not supported by this engine: adapters correct no experts"))
		return
	}
	err := s.cfg.Engine.LoadAdapter(r.Context(), worker.Adapter{Name: f.Name, Path: f.Path, Base: f.Base}, f.Inplace)
	switch {
	case errors.Is(err, worker.ErrAdapterLoaded):
		writeError(w, invalidInput("The lora adapter '"+f.Name+"' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True."))
	case errors.Is(err, worker.ErrClosed):
		writeError(w, unavailable("the worker is shutting down"))
	case err != nil:
		writeError(w, badValue("lora_path", "the adapter '%.256s' cannot be loaded: %v", f.Name, err))
	default:
		s.cfg.Log.Info("adapter loaded", "adapter", f.Name, "path", f.Path)
		success(w, "Success: LoRA adapter '"+f.Name+"' added successfully.")
	}
}

func (s *Server) unloadAdapter(w http.ResponseWriter, r *http.Request) {
	var f struct {
		Name string `json:"lora_name"`
	}
	if err := readBody(r, s.cfg.BodyLimit, &f); err != nil {
		writeError(w, err)
		return
	}
	if f.Name == "" {
		writeError(w, invalidInput("'lora_name' needs to be provided to unload a LoRA adapter."))
		return
	}
	err := s.cfg.Engine.UnloadAdapter(r.Context(), f.Name)
	switch {
	case errors.Is(err, worker.ErrAdapterUnknown):
		writeError(w, notFound("", "The lora adapter '%.256s' cannot be found.", f.Name))
	case err != nil:
		writeError(w, unavailable("the worker is shutting down"))
	default:
		s.cfg.Log.Info("adapter unloaded", "adapter", f.Name)
		success(w, "Success: LoRA adapter '"+f.Name+"' removed successfully.")
	}
}

// success answers with a sentence, as vLLM does to operators.
func success(w http.ResponseWriter, sentence string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(sentence)) // a client that has left is seen by its context
}
