package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"roundhouse/worker/demo"
	"roundhouse/worker/grammar/grammartest"
	"roundhouse/worker/workertest"
)

// TestSchemasOfTheModel holds that the demonstration model, and a model of
// random weights that has no idea of JSON, give valid output for 500 schemas,
// whatever the temperature and with the least budget that a schema needs.
func TestSchemasOfTheModel(t *testing.T) {
	w, err := loadWords(demo.FS, "demo", "")
	if err != nil {
		t.Fatal(err)
	}
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
					text, err := fill(hs.URL, i, schema)
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

var least = regexp.MustCompile(`needs at least (\d+) tokens`)

// fill asks for an answer of schema i, at first with the budget of the least
// form of all; the refusal says what this one needs.
func fill(url string, i int, schema []byte) (string, error) {
	body := map[string]any{
		"prompt": fmt.Sprint("A. ", i, " is "), "seed": i, "temperature": float64(i%4) / 2, "max_tokens": 1,
		"structured_outputs": map[string]any{"json": json.RawMessage(schema), "disable_any_whitespace": i%2 == 0},
	}
	var a struct{ Choices []struct{ Text string } }
	err := postJSON(url+"/v1/completions", body, &a)
	if err != nil {
		m := least.FindStringSubmatch(err.Error())
		if m == nil {
			return "", err
		}
		n, convErr := strconv.Atoi(m[1])
		if convErr != nil {
			return "", errors.Join(err, convErr)
		}
		body["max_tokens"] = n + []int{0, 10, 60}[i%3]
		if err := postJSON(url+"/v1/completions", body, &a); err != nil {
			return "", err
		}
	}
	return a.Choices[0].Text, nil
}
