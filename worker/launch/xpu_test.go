//go:build pocl

package launch

import "testing"

// The GPU's kernels, run by PoCL, give transformers' tokens through the whole worker.
func TestGoldenTokensXPU(t *testing.T) {
	goldenTokens(t, "--dtype", "float32", "--device", "xpu:cpu")
}
