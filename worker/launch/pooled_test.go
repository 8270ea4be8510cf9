package launch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"roundhouse/worker/demo"
	"roundhouse/worker/workertest"
)

// pooledFolder writes a model of one of worker/model's golden files.
func pooledFolder(t *testing.T, fixture string, vocab int) string {
	t.Helper()
	dir := t.TempDir()
	if err := workertest.WriteFolder(dir, "../model/testdata/"+fixture+".json", vocab); err != nil {
		t.Fatal(err)
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
