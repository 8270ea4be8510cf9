package launch

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"roundhouse/worker/demo"
	"roundhouse/worker/workertest"
)

// TestSurvives holds that no request's parameters end the worker, or the request
// that runs beside.
func TestSurvives(t *testing.T) { survives(t, 200) }

// survives sends the worker parameters at the edges of float32, n times, each
// with the answer that it gives alone beside it.
func survives(t *testing.T, n int, args ...string) {
	hs := demoServer(t, append(args, "--dtype", "float32", "--max-num-seqs", "4")...)
	ask := func(body map[string]any) (string, error) {
		var a struct {
			Choices []struct{ Text string }
		}
		if err := postJSON(hs.URL+"/v1/completions", body, &a); err != nil {
			return "", err
		}
		return a.Choices[0].Text, nil
	}
	plain := map[string]any{"prompt": "What is 2+2?", "max_tokens": 6, "temperature": 0}
	want, err := ask(plain)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	pick := func(list ...any) any { return list[rng.IntN(len(list))] }
	for i := range n {
		body := map[string]any{
			"prompt": "Hello", "max_tokens": 4, "seed": i,
			"temperature": pick(1, 1e-5, 1e-40, 2, 0), "min_p": pick(0.1, 0, 1, 1e-45), "top_p": pick(1, 1e-60, 1e-45, 0.5),
			"top_k": pick(0, -1, 1, 2147483647), "repetition_penalty": pick(1e-40, 1e-60, 1e38, 3e38, 1),
			"presence_penalty": pick(0, -2, 2), "frequency_penalty": pick(0, -2, 2), "logprobs": pick(nil, 3),
			"logit_bias": pick(nil, map[string]any{"5": 100, "6": -100}), "allowed_token_ids": pick(nil, []int{7}, []int{5, 6, 7}),
			"stop_token_ids": pick(nil, []int{7}), "min_tokens": pick(0, 3),
		}
		if i == 0 {
			body = map[string]any{"prompt": "Hello", "temperature": 1, "min_p": 0.1, "top_p": 1, "top_k": 0, "repetition_penalty": 1e-40, "max_tokens": 4}
		}
		beside := make(chan error, 1)
		go func() {
			text, err := ask(plain)
			if err == nil && text != want {
				err = fmt.Errorf("got %q; want %q", text, want)
			}
			beside <- err
		}()
		if _, err := ask(body); err != nil {
			t.Fatalf("%v: %v", body, err)
		}
		if err := <-beside; err != nil {
			t.Fatalf("beside %v: %v", body, err)
		}
	}
}

// TestThoughtOfPaddedVocabulary holds that a model with more tokens than its
// tokenizer, as Qwen3 has, can be made to end its reasoning when the budget does.
func TestThoughtOfPaddedVocabulary(t *testing.T) {
	w, err := loadTextFiles(demo.FS, "demo", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := workertest.WriteFolder(dir, "../model/testdata/qwen3.json", w.tokenizer.Size()+100); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		text, err := fs.ReadFile(demo.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		write(text)(filepath.Join(dir, name))
	}
	mark := fmt.Sprintf(`{"id":%d,"content":"</think>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false},`, w.tokenizer.Size())
	edit(`"added_tokens": [`, `"added_tokens": [`+mark)(filepath.Join(dir, "tokenizer.json"))
	hs := demoServer(t, "--model", dir, "--served-model-name", "m", "--max-num-seqs", "4", "--max-model-len", "-1", "--reasoning-parser", "deepseek_r1")
	for i := range 5 {
		var a struct {
			Choices []struct {
				Message struct{ Reasoning, Content string }
			}
		}
		body := map[string]any{
			"messages":        []map[string]string{{"role": "user", "content": "What is 2+2?"}},
			"response_format": map[string]string{"type": "json_object"}, "max_tokens": 12 + i, "seed": i,
		}
		if err := postJSON(hs.URL+"/v1/chat/completions", body, &a); err != nil {
			t.Fatal(err)
		}
		if m := a.Choices[0].Message; m.Content == "" || m.Content[0] != '{' {
			t.Fatalf("a message of %+v", m)
		}
	}
}
