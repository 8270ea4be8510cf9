package launch

import (
	"sync"
	"testing"

	"roundhouse/worker/gguf"
)

// TestQuestions asks the demonstration model 200 held-out questions of each
// kind, greedy, by HTTP, and wants nine of ten answered exactly, and quantised
// within one point of that: 14 questions of 1,400; with pages in int8 as well, and
// from a GGUF file of Q4_0.
func TestQuestions(t *testing.T) {
	whole := answers(t)
	for name, args := range map[string][]string{
		"fp8": {"--quantization", "fp8"}, "sym_int4": {"--quantization", "sym_int4"}, "int8 pages": {"--kv-cache-dtype", "int8_per_token_head"},
		"Q4_0": {"--model", demoGGUF(t, gguf.Q4_0, gguf.BF16), "--quantization", "sym_int4"},
	} {
		t.Run(name, func(t *testing.T) {
			got := answers(t, args...)
			t.Logf("%d of 1400 answers are right; %d as the model is", got, whole)
			if got < whole-14 {
				t.Errorf("%d answers are right; want at least %d", got, whole-14)
			}
		})
	}
}

// answers asks all questions and returns how many answers are right.
func answers(t *testing.T, args ...string) (all int) {
	t.Helper()
	hs := demoServer(t, append([]string{"--max-num-seqs", "128"}, args...)...)
	list := questions(t)
	right, asked := map[string]int{}, map[string]int{}
	var kinds []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	turn := make(chan struct{}, 96)
	for _, q := range list {
		if asked[q.Kind]++; asked[q.Kind] == 1 {
			kinds = append(kinds, q.Kind)
		}
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			var a struct {
				Choices []struct {
					Message struct{ Content string }
					Finish  string `json:"finish_reason"`
				}
			}
			body := map[string]any{"messages": []map[string]string{{"role": "user", "content": q.Question}}, "temperature": 0, "max_tokens": 1100}
			if err := postJSON(hs.URL+"/v1/chat/completions", body, &a); err != nil {
				t.Error(err)
				return
			}
			if c := a.Choices[0]; c.Message.Content == q.Answer && c.Finish == "stop" {
				mu.Lock()
				right[q.Kind]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, k := range kinds {
		all += right[k]
		t.Logf("%-12s %3d of %d", k, right[k], asked[k])
		if asked[k] != 200 || right[k] < asked[k]*9/10 {
			t.Errorf("%s: %d of %d answers are right; want at least nine of ten of 200", k, right[k], asked[k])
		}
	}
	return all
}
