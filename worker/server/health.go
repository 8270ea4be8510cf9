package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"roundhouse/worker/api"
)

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Engine.Err() != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) version(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"version": s.cfg.Version})
}

func (s *Server) serverLoad(w http.ResponseWriter, r *http.Request) {
	load := int64(0)
	if s.cfg.LoadTracking {
		load = s.load.Load()
	}
	writeJSON(w, http.StatusOK, map[string]int64{"server_load": load})
}

// status streams the engine's reports as lines of JSON.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flush, _ := w.(http.Flusher)
	_ = s.cfg.Engine.Watch(r.Context(), func(st api.Status) error {
		line, err := json.Marshal(st)
		if err != nil {
			panic(fmt.Sprintf("BUG: a status cannot be written as JSON: %v", err))
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
		if flush != nil {
			flush.Flush()
		}
		return nil
	})
}

// orca adds the load header that some gateways ask for.
func (s *Server) orca(w http.ResponseWriter, r *http.Request) {
	format := r.Header.Get("Endpoint-Load-Metrics-Format")
	if format == "" {
		return
	}
	st := s.cfg.Engine.Stats()
	switch format {
	case "TEXT", "text":
		w.Header().Set("Endpoint-Load-Metrics", fmt.Sprintf("TEXT named_metrics.kv_cache_usage_perc=%v, named_metrics.num_requests_waiting=%v", st.Usage, st.Waiting))
	case "JSON", "json":
		data, err := json.Marshal(map[string]any{"named_metrics": map[string]any{"kv_cache_usage_perc": st.Usage, "num_requests_waiting": st.Waiting}})
		if err == nil {
			w.Header().Set("Endpoint-Load-Metrics", "JSON "+string(data))
		}
	}
}

// permission is what /v1/models says that one may do with a model.
type permission struct {
	ID            string  `json:"id"`
	Object        string  `json:"object"`
	Created       int64   `json:"created"`
	CreateEngine  bool    `json:"allow_create_engine"`
	Sampling      bool    `json:"allow_sampling"`
	Logprobs      bool    `json:"allow_logprobs"`
	SearchIndices bool    `json:"allow_search_indices"`
	View          bool    `json:"allow_view"`
	FineTuning    bool    `json:"allow_fine_tuning"`
	Organization  string  `json:"organization"`
	Group         *string `json:"group"`
	Blocking      bool    `json:"is_blocking"`
}

type modelCard struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	OwnedBy     string       `json:"owned_by"`
	Root        string       `json:"root"`
	Parent      *string      `json:"parent"`
	MaxModelLen int          `json:"max_model_len"`
	Permission  []permission `json:"permission"`
}

func (s *Server) card(name string) modelCard {
	return modelCard{
		ID: name, Object: "model", Created: s.created, OwnedBy: "vllm", Root: s.cfg.Root, MaxModelLen: s.cfg.MaxModelLen,
		Permission: []permission{{
			ID: "modelperm-" + name, Object: "model_permission", Created: s.created,
			Sampling: true, Logprobs: true, View: true, Organization: "*",
		}},
	}
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	list := []modelCard{}
	for _, m := range s.cfg.Models {
		list = append(list, s.card(m))
	}
	for _, a := range s.cfg.Engine.Adapters() {
		list = append(list, s.adapterCard(a))
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") == "" {
		s.unknown(w, r)
		return
	}
	name, err := s.model(r.PathValue("id"))
	if err != nil {
		writeError(w, err)
		return
	}
	if a := s.cfg.Engine.Adapter(name); a != nil {
		writeJSON(w, http.StatusOK, s.adapterCard(a))
		return
	}
	writeJSON(w, http.StatusOK, s.card(name))
}
