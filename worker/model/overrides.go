package model

import (
	"encoding/json"
	"fmt"
	"os"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
	"roundhouse/worker/weights"
)

// Overrides are fields of config.json that hold instead of the file's, as
// vLLM's --hf-overrides has them. They pass the same checks.
type Overrides map[string]json.RawMessage

// OpenWith is Open with fields of config.json replaced. A GGUF file has none.
func OpenWith(dir string, o Overrides) (*Model, error) {
	if len(o) == 0 {
		return Open(dir)
	}
	if isGGUF(dir) {
		return nil, fmt.Errorf("model %s: a GGUF file has no config.json whose fields could be replaced", dir)
	}
	m, err := open(os.DirFS(dir), o, func() (*weights.Set, error) { return weights.Open(dir) })
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", dir, err)
	}
	return m, nil
}

// over returns config.json with the fields replaced.
func (o Overrides) over(data []byte) ([]byte, error) {
	if len(o) == 0 {
		return data, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	for field, value := range o {
		fields[field] = value
	}
	return json.Marshal(fields)
}

// twoTokens is the row of a classifier that a head gives for two of its tokens:
// the sigmoid of its number is the chance of the second of them alone.
func (g *graph) twoTokens(ids []int32) kernels.Weight {
	name := g.ownHead()
	if name == "" {
		name = g.root() + "embed_tokens.weight"
	}
	row := func(id int32) piece {
		return piece{name: name, shape: []int{g.Vocab, g.Hidden}, first: int(id), count: 1}
	}
	return g.bind(wanted{format: wideFormat(g.format), out: 1, in: g.Hidden, pieces: []piece{row(ids[0]), row(ids[1])},
		make: func(data [][]byte, stored kernels.DType) (kernels.Source, error) {
			no, yes := make([]float32, g.Hidden), make([]float32, g.Hidden)
			num.Decode(no, stored, data[0], 0)
			num.Decode(yes, stored, data[1], 0)
			for i := range yes {
				yes[i] -= no[i]
			}
			return kernels.Source{Type: kernels.F32, Data: bytesOf(yes)}, nil
		}})
}
