//go:build pocl || intel

package launch

import (
	"strings"
	"testing"
)

// The GPU's kernels, run by PoCL or by Intel's driver of the CPU, give transformers' tokens through the whole worker.
func TestGoldenTokensXPU(t *testing.T) {
	goldenTokens(t, "--dtype", "float32", "--device", "xpu:cpu")
}

// Prompts in chunks, from the prefix cache and in company give the tokens that they give alone.
func TestSameTokensXPU(t *testing.T) {
	sameTokens(t, 4, "--max-num-seqs", "4", "--max-num-batched-tokens", "48", "--dtype", "float32", "--device", "xpu:cpu")
}

// No request's parameters end the worker.
func TestSurvivesXPU(t *testing.T) { survives(t, 60, "--device", "xpu:cpu") }

// A worker whose cache size is not given starts on any device that has room for its
// model, gives all else to the pages, and serves contexts of every length there.
func TestMemoryXPU(t *testing.T) {
	folder := copyDemo(t)
	f := func(longest int, args ...string) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			hs := demoServer(t, append(args, "--model", folder, "--served-model-name", "m", "--device", "xpu:cpu")...)
			for _, n := range []int{20, longest} {
				prompt := make([]int, n)
				for i := range prompt {
					prompt[i] = 40 + i%100
				}
				var a struct {
					Usage struct {
						Completion int `json:"completion_tokens"`
					}
				}
				if err := postJSON(hs.URL+"/v1/completions", map[string]any{"prompt": prompt, "max_tokens": 3, "ignore_eos": true}, &a); err != nil || a.Usage.Completion != 3 {
					t.Fatalf("a prompt of %d tokens: %d tokens, %v", n, a.Usage.Completion, err)
				}
			}
		})
	}
	f(300, "--device-memory-bytes", "400000000")
	f(300, "--device-memory-bytes", "1000000000", "--max-num-batched-tokens", "256")
	f(2400, "--device-memory-bytes", "330000000", "--kv-cache-memory-bytes", "60000000", "--max-num-batched-tokens", "8192", "--max-num-seqs", "8")
}
