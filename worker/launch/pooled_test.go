package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	w, err := loadTextFiles(demo.FS, "demo", "")
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

// TestSegments holds that a pair is scored by a model without segments whatever
// its tokenizer says of them, and that a model which lacks some of the
// tokenizer's is refused at the start.
func TestSegments(t *testing.T) {
	w, err := loadTextFiles(demo.FS, "demo", "")
	if err != nil {
		t.Fatal(err)
	}
	if types := w.tokenizer.PairTypes(); !slices.Equal(types, []int32{0, 1}) {
		t.Fatalf("the demonstration model's tokenizer gives the segments %v; want two", types)
	}
	hs := demoServer(t, "--model", pooledFolder(t, "xlm_roberta_score", w.tokenizer.Size()))
	var got struct{ Data []struct{ Score float64 } }
	if err := postJSON(hs.URL+"/score", map[string]any{"text_1": "one", "text_2": []string{"two", "three"}}, &got); err != nil {
		t.Error(err)
	} else if len(got.Data) != 2 || got.Data[0] == got.Data[1] {
		t.Errorf("scores %v", got.Data)
	}

	dir := pooledFolder(t, "bert_score", w.tokenizer.Size())
	path := filepath.Join(dir, "tokenizer.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	part := func(id string, kind int) any {
		return map[string]any{"Sequence": map[string]any{"id": id, "type_id": kind}}
	}
	file["post_processor"] = map[string]any{"type": "TemplateProcessing", "single": []any{part("A", 0)}, "pair": []any{part("A", 0), part("B", 2)}, "special_tokens": map[string]any{}}
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := ParseServe([]string{"--model", dir}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o, quiet); err == nil || !strings.Contains(err.Error(), "gives segment 2 to a part of a pair of texts, and type_vocab_size in config.json is 2") {
		t.Errorf("got %v", err)
	}
}

// TestUnreadWarning holds that a start tells of weights that nothing reads, by the
// names of the first few.
func TestUnreadWarning(t *testing.T) {
	w, err := loadTextFiles(demo.FS, "demo", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := pooledFolder(t, "qwen3_embed", w.tokenizer.Size())
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fewer := bytes.Replace(data, []byte(`"num_hidden_layers":4`), []byte(`"num_hidden_layers":2`), 1)
	if err := os.WriteFile(path, fewer, 0o600); err != nil || bytes.Equal(fewer, data) {
		t.Fatalf("%v: %s", err, data)
	}
	o, err := ParseServe([]string{"--model", dir}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	opened, err := Open(o, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	_, line, _ := strings.Cut(log.String(), "nothing reads some weights")
	line, _, _ = strings.Cut(line, "\n")
	if !strings.Contains(line, "weights=22") || strings.Count(line, "layers.2.") != mostUnread || strings.Contains(line, "layers.1.") {
		t.Errorf("the log says %q\n%s", line, log.String())
	}
}
