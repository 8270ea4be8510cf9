//go:build pocl || intel

package launch

import "testing"

// The GPU's kernels, run by PoCL or by Intel's driver of the CPU, give transformers' tokens through the whole worker.
func TestGoldenTokensXPU(t *testing.T) {
	goldenTokens(t, "--dtype", "float32", "--device", "xpu:cpu")
}
