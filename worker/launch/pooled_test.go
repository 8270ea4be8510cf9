package launch

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"roundhouse/worker/demo"
)

// pooledFolder writes a model of one of worker/model's golden files with random
// weights, and with the demonstration model's tokenizer.
func pooledFolder(t *testing.T, fixture string, vocab int) string {
	t.Helper()
	data, err := os.ReadFile("../model/testdata/" + fixture + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Config  map[string]any    `json:"config"`
		Files   map[string]string `json:"files"`
		Tensors [][]any           `json:"tensors"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	old := f.Config["vocab_size"].(float64)
	f.Config["vocab_size"] = vocab
	rng := rand.New(rand.NewPCG(1, 2))
	header, body := map[string]any{}, []byte{}
	for _, x := range f.Tensors {
		shape, n := []int{}, 1
		for _, d := range x[1].([]any) {
			size := int(d.(float64))
			if d.(float64) == old && len(shape) == 0 && len(x[1].([]any)) == 2 {
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
		t.Fatal(err)
	}
	config, err := json.Marshal(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	words, err := fs.ReadFile(demo.FS, "tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string][]byte{
		"config.json": config, "tokenizer.json": words,
		"model.safetensors": append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), body...),
	}
	for name, text := range f.Files {
		files[name] = []byte(text)
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPooledModels serves an encoder, a decoder that embeds and a
// cross-encoder, and wants the same row alone and in a batch.
func TestPooledModels(t *testing.T) {
	w, err := loadWords(demo.FS, "demo", "")
	if err != nil {
		t.Fatal(err)
	}
	vocab := w.tokenizer.Size()
	type row struct{ Embedding []float64 }
	for _, fixture := range []string{"bert", "qwen3_embed"} {
		t.Run(fixture, func(t *testing.T) {
			hs := demoServer(t, "--model", pooledFolder(t, fixture, vocab), "--served-model-name", "e")
			texts := []string{"one", "two three", "a b c d e", "one"}
			var all, alone struct{ Data []row }
			if err := postJSON(hs.URL+"/v1/embeddings", map[string]any{"input": texts, "model": "e"}, &all); err != nil {
				t.Fatal(err)
			}
			if err := postJSON(hs.URL+"/v1/embeddings", map[string]any{"input": texts[2]}, &alone); err != nil {
				t.Fatal(err)
			}
			if len(all.Data) != 4 || fmt.Sprint(all.Data[2]) != fmt.Sprint(alone.Data[0]) || fmt.Sprint(all.Data[0]) != fmt.Sprint(all.Data[3]) || fmt.Sprint(all.Data[0]) == fmt.Sprint(all.Data[1]) {
				t.Fatalf("rows %v; alone %v", all.Data, alone.Data)
			}
			length := 0.0
			for _, x := range alone.Data[0].Embedding {
				length += x * x
			}
			if math.Abs(length-1) > 1e-3 {
				t.Fatalf("a vector of length² %v; want 1", length)
			}
		})
	}
	t.Run("bert_score", func(t *testing.T) {
		hs := demoServer(t, "--model", pooledFolder(t, "bert_score", vocab), "--task", "classify")
		var c struct {
			Data []struct{ Probs []float64 }
		}
		if err := postJSON(hs.URL+"/classify", map[string]any{"input": []string{"one", "two"}}, &c); err != nil {
			t.Fatal(err)
		}
		labels := len(c.Data[0].Probs)
		err := postJSON(hs.URL+"/score", map[string]any{"text_1": "one", "text_2": []string{"two", "three"}}, &struct{}{})
		if (err == nil) != (labels == 1) {
			t.Fatalf("score of a model with %d labels: %v", labels, err)
		}
		for _, d := range c.Data {
			sum := 0.0
			for _, p := range d.Probs {
				sum += p
			}
			if len(d.Probs) > 1 && math.Abs(sum-1) > 1e-9 || slices.Max(d.Probs) > 1 {
				t.Fatalf("probabilities %v", d.Probs)
			}
		}
	})
}
