package kerneltest

import (
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// Run checks a backend against the reference.
func Run(t *testing.T, b kernels.Backend) {
	t.Run("Linear", func(t *testing.T) { testLinear(t, b) })
	t.Run("Stored", func(t *testing.T) { testStored(t, b) })
	t.Run("BlockScales", func(t *testing.T) { testBlockScales(t, b) })
	t.Run("Fine", func(t *testing.T) { testFine(t, b) })
	t.Run("LinearParts", func(t *testing.T) { testLinearParts(t, b) })
	t.Run("Norm", func(t *testing.T) { testNorm(t, b) })
	t.Run("Activate", func(t *testing.T) { testActivate(t, b) })
	t.Run("Scale", func(t *testing.T) { testScale(t, b) })
	t.Run("Embed", func(t *testing.T) { testEmbed(t, b) })
	t.Run("RoPE", func(t *testing.T) { testRoPE(t, b) })
	t.Run("Axes", func(t *testing.T) { testAxes(t, b) })
	t.Run("Slices", func(t *testing.T) { testSlices(t, b) })
	t.Run("Place", func(t *testing.T) { testPlace(t, b) })
	t.Run("Pool", func(t *testing.T) { testPool(t, b) })
	t.Run("Attention", func(t *testing.T) { testAttention(t, b) })
	t.Run("Encoder", func(t *testing.T) { testEncoder(t, b) })
	t.Run("Cross", func(t *testing.T) { testCross(t, b) })
	t.Run("Times", func(t *testing.T) { testTimes(t, b) })
	t.Run("MoE", func(t *testing.T) { testMoE(t, b) })
	t.Run("Delta", func(t *testing.T) { testDelta(t, b) })
	t.Run("Convolution", func(t *testing.T) { testConvolution(t, b) })
	t.Run("Windows", func(t *testing.T) { testManyWindows(t, b) })
	t.Run("Tower", func(t *testing.T) { testTower(t, b) })
	t.Run("LoRA", func(t *testing.T) { testLoRA(t, b) })
	t.Run("Sample", func(t *testing.T) { testSample(t, b) })
	t.Run("Edges", func(t *testing.T) { testEdges(t, b) })
	t.Run("Draws", func(t *testing.T) { testDraws(t, b) })
	t.Run("Model", func(t *testing.T) { testModel(t, b) })
	t.Run("Company", func(t *testing.T) { testCompany(t, b) })
	t.Run("Errors", func(t *testing.T) { testErrors(t, b) })
}

// against builds the same program on the backend and on the reference, runs a
// step on both and returns the two results; ok is false where the backend
// does not have a format.
func against(t *testing.T, b kernels.Backend, seed uint64, step *kernels.Step, build func(*scene)) (got, want [][]float32, ok bool) {
	t.Helper()
	s, r := newScene(t, b, seed), newScene(t, ref.New(), seed)
	build(s)
	if s.missing {
		t.Logf("%s does not have this format", b.Name())
		return nil, nil, false
	}
	build(r)
	got, _ = run(t, s.compile(limitsOf(step)), step)
	want, _ = run(t, r.compile(limitsOf(step)), step)
	return got, want, true
}
