package launch

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"roundhouse/worker/demo"
	"roundhouse/worker/grammar/grammartest"
	"roundhouse/worker/server"
	"roundhouse/worker/workertest"
)

// TestSchemasOfTheModel holds that the demonstration model, and a model of
// random weights that has no idea of JSON, give valid output for 500 schemas,
// whatever the temperature and with the least budget that a schema needs.
func TestSchemasOfTheModel(t *testing.T) {
	w, err := loadTextFiles(demo.FS, "demo", "")
	if err != nil {
		t.Fatal(err)
	}
	end, _ := w.tokenizer.TokenID("<|im_end|>")
	c := newCompiler(w.tokenizer, w.tokenizer.Size(), []int32{end})
	random := t.TempDir()
	if err := workertest.WriteFolder(random, "../model/testdata/qwen3.json", w.tokenizer.Size()); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"demonstration model": {"--max-num-seqs", "64"},
		"random weights":      {"--model", random, "--max-num-seqs", "64", "--max-model-len", "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			hs := demoServer(t, args...)
			turn := make(chan struct{}, 64)
			var wg sync.WaitGroup
			for i, schema := range grammartest.Schemas() {
				turn <- struct{}{}
				wg.Go(func() {
					defer func() { <-turn }()
					text, err := fill(hs.URL, c, i, schema)
					if err == nil {
						err = grammartest.Valid(schema, text)
					}
					if err != nil {
						t.Errorf("schema %d, %s\ngives %q: %v", i, schema, text, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// fill asks for an answer of schema i, with as many tokens as its least form
// takes, or some more.
func fill(url string, c *compiler, i int, schema []byte) (string, error) {
	form, err := c.compile(server.Form{Kind: server.FormSchema, Schema: schema, Compact: i%2 == 0})
	if err != nil {
		return "", err
	}
	body := map[string]any{
		"prompt": fmt.Sprint("A. ", i, " is "), "seed": i, "temperature": float64(i%4) / 2, "max_tokens": form.MinTokens() + []int{0, 10, 60}[i%3],
		"structured_outputs": map[string]any{"json": json.RawMessage(schema), "disable_any_whitespace": i%2 == 0},
	}
	var a struct{ Choices []struct{ Text string } }
	if err := postJSON(url+"/v1/completions", body, &a); err != nil {
		return "", err
	}
	return a.Choices[0].Text, nil
}
