package kerneltest

import (
	"testing"

	"roundhouse/kernels"
)

// Linears is the part of Run that a backend's linears show in: for one that has
// several kinds of them.
func Linears(t *testing.T, b kernels.Backend) {
	t.Run("Linear", func(t *testing.T) { testLinear(t, b) })
	t.Run("LinearParts", func(t *testing.T) { testLinearParts(t, b) })
	t.Run("MoE", func(t *testing.T) { testMoE(t, b) })
	t.Run("Company", func(t *testing.T) { testCompany(t, b) })
}

// Attentions is the part of Run that a backend's attention shows in, likewise.
func Attentions(t *testing.T, b kernels.Backend) {
	t.Run("Attention", func(t *testing.T) { testAttention(t, b) })
	t.Run("Encoder", func(t *testing.T) { testEncoder(t, b) })
}
