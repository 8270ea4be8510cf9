package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"roundhouse/worker/demo"
	"roundhouse/worker/workertest"
)

// fixtureFolder writes a model of one of worker/model's golden files, with fields
// of its config.json changed.
func fixtureFolder(t *testing.T, fixture string, fields map[string]any) string {
	t.Helper()
	w, err := loadTextFiles(demo.FS, "demo", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := workertest.WriteFolder(dir, "../model/testdata/"+fixture+".json", w.tokenizer.Size()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for k, v := range fields {
		config[k] = v
	}
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	write(text)(path)
	return dir
}

// TestWindowsAlone holds that a model of which every layer has a window starts
// with a cache smaller than its longest sequence, and gives the tokens there that
// a large cache gives.
func TestWindowsAlone(t *testing.T) {
	folder := fixtureFolder(t, "mistral", map[string]any{"sliding_window": 64, "max_position_embeddings": 2048})
	ask := func(args ...string) []string {
		hs := demoServer(t, append(args, "--model", folder, "--served-model-name", "m", "--dtype", "float32")...)
		out := make([]string, 6)
		var wg sync.WaitGroup
		for i := range out {
			wg.Go(func() {
				prompt := make([]int, 30+300*i)
				for k := range prompt {
					prompt[k] = (7*k + i) % 1000
				}
				var a struct{ Choices []struct{ Text string } }
				if err := postJSON(hs.URL+"/v1/completions", map[string]any{"prompt": prompt, "max_tokens": 80, "temperature": 0, "ignore_eos": true}, &a); err != nil {
					t.Error(err)
					return
				}
				out[i] = a.Choices[0].Text
			})
		}
		wg.Wait()
		return out
	}
	little := ask("--max-num-seqs", "4", "--max-num-batched-tokens", "128")
	alone := ask("--max-num-seqs", "1", "--max-num-batched-tokens", "64")
	if fmt.Sprint(little) != fmt.Sprint(alone) {
		t.Fatalf("four at once give %q; one at a time %q", little, alone)
	}
}
