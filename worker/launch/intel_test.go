//go:build intel

package launch

import "testing"

// On a GPU, too, a request gives the same tokens alone and in company, its prompt whole, in
// chunks, and from the prefix cache.
func TestSameTokensXPU(t *testing.T) {
	sameTokens(t, 12, "--max-num-seqs", "12", "--max-num-batched-tokens", "48", "--device", "xpu:cpu")
}
