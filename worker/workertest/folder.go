package workertest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"roundhouse/worker/demo"
)

// fixture is what a golden file of worker/model says of its model.
type fixture struct {
	Config  map[string]any    `json:"config"`
	Files   map[string]string `json:"files"`
	Tensors [][]any           `json:"tensors"` // name, shape, mean, deviation
}

// WriteFolder makes a model folder in dir: the model of a golden file of
// worker/model with random weights, and the demonstration model's tokenizer,
// which has vocab tokens.
func WriteFolder(dir, golden string, vocab int) error {
	data, err := os.ReadFile(golden)
	if err != nil {
		return err
	}
	var f fixture
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("%s: %w", golden, err)
	}
	weights := f.weights(vocab)
	textOf(f.Config)["vocab_size"] = vocab
	config, err := json.Marshal(f.Config)
	if err != nil {
		return err
	}
	words, err := fs.ReadFile(demo.FS, "tokenizer.json")
	if err != nil {
		return err
	}
	files := map[string][]byte{"config.json": config, "tokenizer.json": words, "model.safetensors": weights}
	for name, text := range f.Files {
		files[name] = []byte(text)
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// textOf is where a configuration has the fields of its text model.
func textOf(config map[string]any) map[string]any {
	if text, ok := config["text_config"].(map[string]any); ok {
		return text
	}
	return config
}

// weights is a safetensors file of random numbers, with the embeddings cut to
// vocab rows.
func (f *fixture) weights(vocab int) []byte {
	old, _ := textOf(f.Config)["vocab_size"].(float64)
	rng := rand.New(rand.NewPCG(1, 2))
	header, body := map[string]any{}, []byte{}
	for _, x := range f.Tensors {
		shape, n := []int{}, 1
		dims := x[1].([]any)
		for _, d := range dims {
			size := int(d.(float64))
			if d.(float64) == old && len(shape) == 0 && len(dims) == 2 {
				size = vocab
			}
			shape, n = append(shape, size), n*size
		}
		from := len(body)
		for range n {
			v := x[2].(float64) + x[3].(float64)*rng.NormFloat64()
			body = binary.LittleEndian.AppendUint32(body, math.Float32bits(float32(v)))
		}
		header[x[0].(string)] = map[string]any{"dtype": "F32", "shape": shape, "data_offsets": []int{from, len(body)}}
	}
	head, err := json.Marshal(header)
	if err != nil {
		panic(fmt.Sprintf("BUG: a header cannot be written: %v", err))
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), body...)
}
