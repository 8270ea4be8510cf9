package launch

import (
	"sync"
	"testing"

	"roundhouse/worker/gguf"
)

// TestQuestions asks the demonstration model 200 held-out questions of each
// kind, greedy, by HTTP, and wants nine of ten answered exactly. Quantised, with
// pages in int8 and from a GGUF file of Q4_0 it is asked each fourth of them, and
// may lose five of those 350.
func TestQuestions(t *testing.T) {
	whole := answers(t, 1)
	const every = 4
	of := 0 // the whole model's right answers among those that the others are asked
	for i, right := range whole {
		if right && i%every == 0 {
			of++
		}
	}
	for name, args := range map[string][]string{
		"fp8": {"--quantization", "fp8"}, "sym_int4": {"--quantization", "sym_int4"}, "int8 pages": {"--kv-cache-dtype", "int8_per_token_head"},
		"Q4_0": {"--model", demoGGUF(t, gguf.Q4_0, gguf.BF16), "--quantization", "sym_int4"},
	} {
		t.Run(name, func(t *testing.T) {
			got := 0
			for _, right := range answers(t, every, args...) {
				if right {
					got++
				}
			}
			t.Logf("%d of 350 answers are right; %d as the model is", got, of)
			if got < of-5 {
				t.Errorf("%d answers are right; want at least %d", got, of-5)
			}
		})
	}
}

// answers asks every nth question and reports which answers are right.
func answers(t *testing.T, n int, args ...string) []bool {
	t.Helper()
	hs := demoServer(t, append([]string{"--max-num-seqs", "128"}, args...)...)
	list := questions(t)
	out := make([]bool, len(list))
	right, asked := map[string]int{}, map[string]int{}
	var kinds []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	turn := make(chan struct{}, 96)
	for i, q := range list {
		if i%n != 0 {
			continue
		}
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
				out[i] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, k := range kinds {
		t.Logf("%-12s %3d of %d", k, right[k], asked[k])
		if asked[k] != 200/n || right[k] < asked[k]*9/10 {
			t.Errorf("%s: %d of %d answers are right; want at least nine of ten of %d", k, right[k], asked[k], 200/n)
		}
	}
	return out
}
