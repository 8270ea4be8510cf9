package server

import (
	"encoding/json"
	"math"
	"net/http"

	"roundhouse/kernels"
)

// generativeScoreRequest asks how likely the model goes on with certain tokens
// behind a query and each of some items.
type generativeScoreRequest struct {
	Model      string          `json:"model"`
	Query      json.RawMessage `json:"query"`
	Items      json.RawMessage `json:"items"`
	Labels     []int           `json:"label_token_ids"`
	Softmax    *bool           `json:"apply_softmax"`
	ItemFirst  bool            `json:"item_first"`
	AddSpecial *bool           `json:"add_special_tokens"`
	CacheSalt  *string         `json:"cache_salt"`
	Priority   int             `json:"priority"`
	RequestID  string          `json:"request_id"`
}

// generativeScore is one request of this route on its way.
type generativeScore struct {
	*job
	softmax bool
}

func (g *generativeScore) streams() bool                                 { return false }
func (g *generativeScore) stream(_ http.ResponseWriter, _ *http.Request) {}

func (s *Server) newGenerativeScore(r *http.Request, f *generativeScoreRequest) (*generativeScore, *apiError) {
	model, err := s.model(f.Model)
	if err != nil {
		return nil, err
	}
	switch {
	case f.Query == nil:
		return nil, badShape("missing", "body.query", "Field required")
	case f.Items == nil:
		return nil, badShape("missing", "body.items", "Field required")
	case f.Labels == nil:
		return nil, badShape("missing", "body.label_token_ids", "Field required")
	case len(f.Labels) == 0:
		return nil, badValue("", "label_token_ids must contain at least one token ID.")
	}
	fields := &samplingFields{CacheSalt: f.CacheSalt, Priority: f.Priority, RequestID: f.RequestID, LogprobIDs: f.Labels, MaxTokens: new(1)}
	if err := fields.check(s.cfg.MaxModelLen); err != nil {
		return nil, err
	}
	p, text, err := s.params(fields)
	if err != nil {
		return nil, badValue("", "%s", err.Message)
	}
	p.Logprobs = 0
	prompts, err := s.scorePrompts(f)
	if err != nil {
		return nil, err
	}
	g := &generativeScore{job: s.newJob(r, "generative-scoring-", fields, model), softmax: value(f.Softmax, true)}
	g.text = text
	for _, tokens := range prompts {
		tokens = tokens[:min(len(tokens), s.cfg.MaxModelLen-1)]
		if err := g.take(r, p, tokens, fields.MaxTokens, "max_tokens"); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// scorePrompts joins the query with each item, as texts or as tokens.
func (s *Server) scorePrompts(f *generativeScoreRequest) ([][]int32, *apiError) {
	query, ok := s.textOrTokens(f.Query, value(f.AddSpecial, true))
	if !ok {
		return nil, badShape("string_type", "body.query", "Input should be a valid string or a list of token ids")
	}
	items, ok := decoded[[]json.RawMessage](f.Items)
	if !ok {
		return nil, badShape("list_type", "body.items", "Input should be a valid list")
	}
	if len(items) == 0 || len(items) > maxPrompts {
		return nil, badValue("", "items must contain at least one item, and at most %d.", maxPrompts)
	}
	var out [][]int32
	for i, raw := range items {
		item, ok := s.textOrTokens(raw, false)
		if !ok {
			return nil, badShape("string_type", at("body.items", i), "Input should be a valid string or a list of token ids")
		}
		tokens := append(append([]int32{}, query...), item...)
		if f.ItemFirst {
			tokens = append(append([]int32{}, item...), query...)
		}
		for _, id := range tokens {
			if id < 0 || int(id) >= s.cfg.Vocab {
				return nil, badValue("", "Token id %d is out of vocabulary", id)
			}
		}
		out = append(out, tokens)
	}
	return out, nil
}

func (s *Server) textOrTokens(raw json.RawMessage, special bool) ([]int32, bool) {
	if text, ok := decoded[string](raw); ok {
		return s.encode(text, special, true), true
	}
	return decoded[[]int32](raw)
}

func (g *generativeScore) answer(w http.ResponseWriter, r *http.Request) {
	scores := make([]float64, len(g.reqs))
	err := g.run(r.Context(), func(u update) error {
		if u.token >= 0 {
			scores[u.index] = g.score(&u.event.Chosen)
		}
		return nil
	})
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	data := make([]map[string]any, len(scores))
	for i, v := range scores {
		data[i] = map[string]any{"index": i, "object": "score", "score": v}
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": g.id, "object": "list", "created": g.created, "model": g.model, "data": data, "usage": g.usage()})
}

// score is the first label's chance, among the labels or among all tokens.
func (g *generativeScore) score(c *kernels.Choice) float64 {
	first := float64(c.Probe[0])
	if !g.softmax {
		return math.Exp(first - float64(c.LogSumExp))
	}
	sum := 0.0
	for _, logit := range c.Probe {
		sum += math.Exp(float64(logit) - first)
	}
	return 1 / sum
}
