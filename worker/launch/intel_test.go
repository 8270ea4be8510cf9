//go:build intel

package launch

import "testing"

// With real sub-groups, many requests give the same tokens alone and in company, their
// prompts whole, in chunks, and from the prefix cache.
func TestManySameTokensXPU(t *testing.T) {
	sameTokens(t, 12, "--max-num-seqs", "12", "--max-num-batched-tokens", "48", "--device", "xpu:cpu")
}
