//go:build pocl || intel

package launch

import "testing"

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
