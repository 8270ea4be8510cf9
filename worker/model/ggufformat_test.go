package model

import (
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/worker/gguf"
)

// TestGGUFFormats: a GGUF file can be kept in every format, and then differs
// from what its blocks mean by rounding; sixteen bits keep blocks as int8.
func TestGGUFFormats(t *testing.T) {
	for _, name := range []string{"gguf_llama", "gguf_qwen2", "gguf_qwen3", "gguf_qwen3_moe"} {
		f := &ggufFixture{}
		readJSON(t, name, f)
		var contents []gguf.Content
		for _, x := range f.Tensors {
			contents = append(contents, x.content())
		}
		m := ggufModel(t, f.Values, contents)
		want := first(t, m, kernels.FormatF32, f.IDs[0])
		times := 1.0
		if strings.HasSuffix(name, "moe") {
			times = 1.5 // rounding chooses another expert, too
		}
		for format, most := range map[kernels.Format]float64{kernels.FormatBF16: 0.06, kernels.FormatF16: 0.06, kernels.FormatInt8: 0.06, kernels.FormatFP8: 0.2, kernels.FormatInt4: 0.8} {
			isNear(t, name, m, format, f.IDs[0], want, times*most)
		}
		if sixteen, eight := m.WeightBytes(kernels.FormatBF16), m.WeightBytes(kernels.FormatF32); sixteen*5 > eight*2 {
			t.Errorf("%s: %d bytes where sixteen bits were asked for, %d as float32: blocks are not kept as int8", name, sixteen, eight)
		}
	}
}

// TestQ4: matrices of Q4_0, experts too, stay as they are where the backend has
// groups of 32, whether sixteen bits were asked for or four, and then lose nothing
// but what activations in int8 do; elsewhere four bits are chosen anew.
func TestQ4(t *testing.T) {
	for _, name := range []string{"gguf_qwen2", "gguf_qwen3_moe"} {
		f := &ggufFixture{}
		readJSON(t, name, f)
		var contents []gguf.Content
		for _, x := range f.Tensors {
			if len(x.shape) >= 2 && strings.HasPrefix(x.name, "blk.") && !strings.Contains(x.name, "gate_inp") {
				x.kind = "Q4_0"
			}
			contents = append(contents, x.content())
		}
		m := ggufModel(t, f.Values, contents)
		want := first(t, m, kernels.FormatF32, f.IDs[0])
		eight, again := m.WeightBytes(kernels.FormatBF16), m.WeightBytes(kernels.FormatInt4)
		isNear(t, name+" chosen anew", m, kernels.FormatInt4, f.IDs[0], want, 0.8)
		m.FineGroups()
		for _, format := range []kernels.Format{kernels.FormatBF16, kernels.FormatInt4} {
			isNear(t, name+" as it is", m, format, f.IDs[0], want, 0.05)
			if four := m.WeightBytes(format); four >= eight || format == kernels.FormatInt4 && four > again+again/4 {
				t.Errorf("%s, %v: %d bytes as it is, %d as int8, %d chosen anew", name, format, four, eight, again)
			}
		}
	}
}
