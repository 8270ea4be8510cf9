package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"

	"roundhouse/kernels"
	"roundhouse/worker"
)

// Kind is what the served model does.
type Kind uint8

// The kinds of models.
const (
	Generates   Kind = iota
	Embeds           // one vector a text
	Scores           // one or more numbers a text or a pair of texts
	Transcribes      // text of speech
)

// maxTexts bounds the texts of one request.
const maxTexts = 2048

// poolFields are what requests to models that embed or score share.
type poolFields struct {
	Model          string  `json:"model"`
	TruncatePrompt *int    `json:"truncate_prompt_tokens"`
	TruncationSide string  `json:"truncation_side"`
	AddSpecial     *bool   `json:"add_special_tokens"`
	UseActivation  *bool   `json:"use_activation"`
	Activation     *bool   `json:"activation"` // its older name
	User           *string `json:"user"`
	PromptName     *string `json:"prompt_name"` // of sentence-transformers
}

// activates reports whether numbers are to become probabilities.
func (f *poolFields) activates() bool { return value(f.UseActivation, value(f.Activation, true)) }

// pooledRoutes are the routes of the kind of model that is served.
func (s *Server) pooledRoutes() {
	s.handle("POST /score", s.generating(s.score))
	s.handle("POST /v1/score", s.generating(s.score))
	for _, path := range []string{"/rerank", "/v1/rerank", "/v2/rerank"} {
		s.handle("POST "+path, s.generating(s.rerank))
	}
	if s.cfg.Kind == Embeds {
		s.handle("POST /v1/embeddings", s.generating(s.embeddings))
		s.handle("POST /pooling", s.generating(s.poolRows))
		return
	}
	s.handle("POST /classify", s.generating(s.classify))
	s.handle("POST /pooling", s.generating(s.poolRows))
}

// pool runs texts through the model and tells how many tokens they had.
func (s *Server) pool(ctx context.Context, texts []worker.Text) (rows [][]float32, tokens int, err *apiError) {
	for i, t := range texts {
		if len(t.Tokens) == 0 {
			return nil, 0, badValue("input", "The prompt cannot be empty")
		}
		if len(t.Tokens) > s.cfg.MaxModelLen {
			return nil, 0, badValue("input_tokens", "This model's maximum context length is %d tokens. However, you requested %d tokens in the input for embedding generation. Please reduce the length of the input.", s.cfg.MaxModelLen, len(t.Tokens))
		}
		if s.cfg.Positions != nil {
			texts[i].Positions = s.cfg.Positions(t.Tokens)
		}
		tokens += len(t.Tokens)
	}
	rows, runErr := s.cfg.Engine.Pool(ctx, texts)
	var failed *kernels.StepError
	switch {
	case runErr == nil:
		return rows, tokens, nil
	case errors.Is(runErr, worker.ErrClosed):
		return nil, 0, unavailable("the worker is shutting down")
	case s.cfg.Engine.Failed() != nil:
		return nil, 0, internal("EngineCore encountered an issue. See stack trace (above) for the root cause.")
	case errors.As(runErr, &failed):
		return nil, 0, s.stepFailed(failed)
	}
	return nil, 0, badValue("", "%s", runErr.Error())
}

// cutText is truncate for a text with segments.
func (s *Server) cutText(t worker.Text, f *poolFields) (worker.Text, *apiError) {
	if f.TruncatePrompt == nil {
		return t, nil
	}
	keep := *f.TruncatePrompt
	if keep < -1 {
		return t, badValue("truncate_prompt_tokens", "truncate_prompt_tokens must be at least -1, got %d.", keep)
	}
	if keep == -1 {
		keep = s.cfg.MaxModelLen
	}
	n := len(t.Tokens)
	if keep == 0 || n <= keep {
		return t, nil
	}
	from, to := 0, keep // what these models were trained with: the end is lost
	if f.TruncationSide == "left" {
		from, to = n-keep, n
	}
	t.Tokens = t.Tokens[from:to]
	if t.Types != nil {
		t.Types = t.Types[from:to]
	}
	return t, nil
}

// inputs reads an input in its four forms.
func (s *Server) inputs(raw json.RawMessage, f *poolFields, prefix string) ([]worker.Text, *apiError) {
	var texts []string
	var lists [][]int32
	if one, ok := decoded[string](raw); ok {
		texts = []string{one}
	} else if many, ok := decoded[[]string](raw); ok {
		texts = many
	} else if ids, ok := decoded[[]int32](raw); ok {
		lists = [][]int32{ids}
	} else {
		lists, _ = decoded[[][]int32](raw)
	}
	if n := len(texts) + len(lists); n == 0 || n > maxTexts {
		return nil, badValue("input", "input must be a string, a list of strings, a list of token ids or a list of such lists, with 1 to %d entries", maxTexts)
	}
	for _, text := range texts {
		if err := s.checkLength(text); err != nil && f.TruncatePrompt == nil {
			return nil, err
		}
		lists = append(lists, s.encode(prefix+text, value(f.AddSpecial, true), false))
	}
	var out []worker.Text
	for _, ids := range lists {
		for _, id := range ids {
			if id < 0 || int(id) >= s.cfg.Vocab {
				return nil, badValue("input", "Token id %d is out of vocabulary", id)
			}
		}
		t, err := s.cutText(worker.Text{Tokens: ids}, f)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// probabilities are what a row of a classifier says: a sigmoid of one number,
// a softmax of several.
func probabilities(row []float32) []float64 {
	out := make([]float64, len(row))
	if len(row) == 1 {
		out[0] = 1 / (1 + math.Exp(-float64(row[0])))
		return out
	}
	most, sum := math.Inf(-1), 0.0
	for _, x := range row {
		most = max(most, float64(x))
	}
	for i, x := range row {
		out[i] = math.Exp(float64(x) - most)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func widened(row []float32) []float64 {
	out := make([]float64, len(row))
	for i, x := range row {
		out[i] = float64(x)
	}
	return out
}

// cosine is how near two vectors are.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

func promptUsage(tokens int) map[string]int {
	return map[string]int{"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0}
}

// poolRows answers /pooling: the model's rows as they are.
func (s *Server) poolRows(w http.ResponseWriter, r *http.Request) {
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
		out := widened(row)
		if s.cfg.Kind == Scores && f.activates() {
			out = probabilities(row)
		}
		data[i] = map[string]any{"index": i, "object": "pooling", "data": out}
	}
	writeJSON(w, http.StatusOK, answerOf("pool-", model, data, tokens))
}

// pooledInput reads a body, checks its model and runs its input.
func (s *Server) pooledInput(r *http.Request, body any, input *json.RawMessage, f *poolFields) (rows [][]float32, tokens int, model string, err *apiError) {
	if err = readBody(r, s.cfg.BodyLimit, body); err != nil {
		return nil, 0, "", err
	}
	if model, err = s.model(f.Model); err != nil {
		return nil, 0, "", err
	}
	if *input == nil {
		return nil, 0, "", badShape("missing", "body.input", "Field required")
	}
	prefix := s.cfg.EmbedPrefix
	if f.PromptName != nil {
		var known bool
		if prefix, known = s.cfg.Prompts[*f.PromptName]; !known {
			return nil, 0, "", badValue("prompt_name", "this model has no prompt %.64q; it has %q", *f.PromptName, slices.Sorted(maps.Keys(s.cfg.Prompts)))
		}
	}
	texts, err := s.inputs(*input, f, prefix)
	if err != nil {
		return nil, 0, "", err
	}
	rows, tokens, err = s.pool(r.Context(), texts)
	return rows, tokens, model, err
}
