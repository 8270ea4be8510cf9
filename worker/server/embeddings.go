package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"time"
)

type embeddingsRequest struct {
	Input      json.RawMessage `json:"input"`
	Messages   json.RawMessage `json:"messages"`
	Format     string          `json:"encoding_format"`
	Dimensions *int            `json:"dimensions"`
	poolFields
}

func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	var f embeddingsRequest
	rows, tokens, model, err := s.pooledInput(r, &f, &f.Input, &f.poolFields)
	if err == nil && f.Dimensions != nil {
		rows, err = s.cut(rows, *f.Dimensions, model)
	}
	switch {
	case err != nil && f.Messages != nil && f.Input == nil:
		err = badValue("messages", "`messages` are not supported by this engine on /v1/embeddings; send `input`.")
	case err == nil && f.Format != "" && f.Format != "float" && f.Format != "base64":
		err = badValue("encoding_format", "encoding_format must be float or base64, got %.32q", f.Format)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	data := make([]map[string]any, len(rows))
	for i, row := range rows {
		var vector any = row
		if f.Format == "base64" {
			raw := make([]byte, 0, 4*len(row))
			for _, x := range row {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			vector = base64.StdEncoding.EncodeToString(raw)
		}
		data[i] = map[string]any{"index": i, "object": "embedding", "embedding": vector}
	}
	writeJSON(w, http.StatusOK, answerOf("embd-", model, data, tokens))
}

// cut shortens vectors of a model whose first numbers are a vector themselves
// (matryoshka), and brings them to unit length again.
func (s *Server) cut(rows [][]float32, n int, model string) ([][]float32, *apiError) {
	whole := len(rows[0])
	switch {
	case n == whole:
		return rows, nil
	case s.cfg.Dimensions == nil:
		return nil, badValue("dimensions", "Model %q does not support matryoshka representation, changing output dimensions will lead to poor results.", model)
	case len(s.cfg.Dimensions) > 0 && !slices.Contains(s.cfg.Dimensions, n):
		return nil, badValue("dimensions", "Model %q only supports %v matryoshka dimensions, use other output dimensions will lead to poor results.", model, s.cfg.Dimensions)
	case n < 1 || n > whole:
		return nil, badValue("dimensions", "dimensions must be 1 to %d, got %d", whole, n)
	}
	out := make([][]float32, len(rows))
	for i, row := range rows {
		var sum float64
		for _, x := range row[:n] {
			sum += float64(x) * float64(x)
		}
		length := max(math.Sqrt(sum), 1e-12)
		for _, x := range row[:n] {
			out[i] = append(out[i], float32(float64(x)/length))
		}
	}
	return out, nil
}

// answerOf is the frame that lists of rows come in.
func answerOf(prefix, model string, data []map[string]any, tokens int) map[string]any {
	return map[string]any{
		"id": prefix + randomID(), "object": "list", "created": time.Now().Unix(), "model": model, "data": data, "usage": promptUsage(tokens),
	}
}
