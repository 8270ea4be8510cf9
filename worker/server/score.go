package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"roundhouse/worker"
	"roundhouse/worker/tokenizer"
)

// scoreRequest has the names that vLLM knows for the two sides of a score.
type scoreRequest struct {
	Queries   json.RawMessage `json:"queries"`
	Documents json.RawMessage `json:"documents"`
	Items     json.RawMessage `json:"items"`
	Data1     json.RawMessage `json:"data_1"`
	Data2     json.RawMessage `json:"data_2"`
	Text1     json.RawMessage `json:"text_1"`
	Text2     json.RawMessage `json:"text_2"`

	Instruction string `json:"instruction"`
	poolFields
}

// sides returns the two lists of a request.
func (f *scoreRequest) sides() (a, b []string, err *apiError) {
	for _, p := range [][2]json.RawMessage{{f.Queries, f.Documents}, {f.Queries, f.Items}, {f.Data1, f.Data2}, {f.Text1, f.Text2}} {
		if p[0] == nil || p[1] == nil {
			continue
		}
		var left, right stringList
		if json.Unmarshal(p[0], &left) != nil || json.Unmarshal(p[1], &right) != nil {
			return nil, nil, badValue("queries", "both sides of a score must be a string or a list of strings")
		}
		if len(left) == 0 || len(right) == 0 || len(left) > maxTexts || len(right) > maxTexts {
			return nil, nil, badValue("queries", "both sides of a score must have 1 to %d texts", maxTexts)
		}
		if len(left) > 1 && len(left) != len(right) {
			return nil, nil, badValue("queries", "Input lengths must be either 1:1, 1:N or N:N")
		}
		for len(left) < len(right) {
			left = append(left, left[0])
		}
		return left, right, nil
	}
	return nil, nil, badShape("missing", "body.queries", "Field required")
}

// scores gives a number for each pair: a cross-encoder's own, or how near the
// vectors of a model that embeds are.
func (s *Server) scores(ctx context.Context, a, b []string, instruction string, f *poolFields) ([]float64, int, *apiError) {
	if instruction != "" && s.cfg.Pair == nil {
		return nil, 0, badValue("instruction", "`instruction` is not supported by this model.")
	}
	var texts []worker.Text
	for i := range a {
		for _, side := range []string{a[i], b[i]} {
			if err := s.checkLength(side); err != nil && f.TruncatePrompt == nil {
				return nil, 0, err
			}
		}
		if s.cfg.Kind == Embeds {
			texts = append(texts, worker.Text{Tokens: s.encode(a[i], true, false)}, worker.Text{Tokens: s.encode(b[i], true, false)})
			continue
		}
		if s.cfg.Pair != nil {
			texts = append(texts, worker.Text{Tokens: s.cfg.Tokenizer.EncodeSegments(s.cfg.Pair(a[i], b[i], instruction), tokenizer.EncodeOptions{})})
			continue
		}
		ids, types := s.cfg.Tokenizer.EncodePair(a[i], b[i])
		if !s.cfg.Segments {
			types = nil
		}
		texts = append(texts, worker.Text{Tokens: ids, Types: types})
	}
	for i := range texts {
		var err *apiError
		if texts[i], err = s.cutText(texts[i], f); err != nil {
			return nil, 0, err
		}
	}
	rows, tokens, err := s.pool(ctx, texts)
	if err != nil {
		return nil, 0, err
	}
	out := make([]float64, len(a))
	for i := range out {
		switch {
		case s.cfg.Kind == Embeds:
			out[i] = cosine(rows[2*i], rows[2*i+1])
		case len(rows[i]) != 1:
			return nil, 0, badValue("", "the model gives %d numbers for a pair, and a score is one; use /classify", len(rows[i]))
		case f.activates():
			out[i] = probabilities(rows[i])[0]
		default:
			out[i] = float64(rows[i][0])
		}
	}
	return out, tokens, nil
}

func (s *Server) score(w http.ResponseWriter, r *http.Request) {
	var f scoreRequest
	err := readBody(r, s.cfg.BodyLimit, &f)
	var model string
	if err == nil {
		model, err = s.model(f.Model)
	}
	var a, b []string
	if err == nil {
		a, b, err = f.sides()
	}
	var numbers []float64
	tokens := 0
	if err == nil {
		numbers, tokens, err = s.scores(r.Context(), a, b, f.Instruction, &f.poolFields)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	data := make([]map[string]any, len(numbers))
	for i, v := range numbers {
		data[i] = map[string]any{"index": i, "object": "score", "score": v}
	}
	writeJSON(w, http.StatusOK, answerOf("score-", model, data, tokens))
}

type rerankRequest struct {
	Query       string          `json:"query"`
	Documents   json.RawMessage `json:"documents"`
	TopN        int             `json:"top_n"`
	Instruction string          `json:"instruction"`
	poolFields
}

func (s *Server) rerank(w http.ResponseWriter, r *http.Request) {
	var f rerankRequest
	err := readBody(r, s.cfg.BodyLimit, &f)
	var model string
	if err == nil {
		model, err = s.model(f.Model)
	}
	documents, ok := decoded[[]string](f.Documents)
	switch {
	case err != nil:
	case f.Query == "":
		err = badShape("missing", "body.query", "Field required")
	case !ok || len(documents) == 0 || len(documents) > maxTexts:
		err = badValue("documents", "documents must be a list of 1 to %d strings", maxTexts)
	case f.TopN < 0:
		err = badValue("top_n", "top_n must be at least 0, got %d", f.TopN)
	}
	var numbers []float64
	tokens := 0
	if err == nil {
		numbers, tokens, err = s.scores(r.Context(), slices.Repeat([]string{f.Query}, len(documents)), documents, f.Instruction, &f.poolFields)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	type result struct {
		Index     int            `json:"index"`
		Document  map[string]any `json:"document"`
		Relevance float64        `json:"relevance_score"`
	}
	results := make([]result, len(numbers))
	for i, v := range numbers {
		results[i] = result{i, map[string]any{"text": documents[i], "multi_modal": nil}, v}
	}
	slices.SortStableFunc(results, func(a, b result) int { return cmp.Compare(b.Relevance, a.Relevance) })
	if f.TopN > 0 {
		results = results[:min(f.TopN, len(results))]
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": "rerank-" + randomID(), "model": model, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens}, "results": results,
	})
}

func (s *Server) classify(w http.ResponseWriter, r *http.Request) {
	var f struct {
		Input json.RawMessage `json:"input"`
		poolFields
	}
	rows, tokens, model, err := s.pooledInput(r, &f, &f.Input, &f.poolFields)
	if err != nil {
		writeError(w, err)
		return
	}
	data := make([]map[string]any, len(rows))
	for i, row := range rows {
		probs := widened(row)
		if f.activates() {
			probs = probabilities(row)
		}
		best := 0
		for k := range row {
			if row[k] > row[best] {
				best = k
			}
		}
		data[i] = map[string]any{"index": i, "label": s.label(best), "probs": probs, "num_classes": len(row)}
	}
	writeJSON(w, http.StatusOK, answerOf("classify-", model, data, tokens))
}

// label names a class.
func (s *Server) label(i int) any {
	if i < len(s.cfg.Labels) {
		return s.cfg.Labels[i]
	}
	return nil
}
