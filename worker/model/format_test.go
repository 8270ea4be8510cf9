package model

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// first runs the first token of a golden file in a format. Its attention sees
// itself alone, so that rounding does not grow.
func first(t *testing.T, m *Model, format kernels.Format, id int32) []float32 {
	t.Helper()
	be := ref.New()
	defer be.Close()
	specs := m.KVGroups(blockTokens, kernels.BF16)
	q := kernels.Seq{Count: 1, Context: 1}
	for i := range specs {
		specs[i].Blocks = 1
		q.Blocks = append(q.Blocks, []int32{0})
	}
	built, err := m.Build(be, BuildOptions{Format: format, KV: specs})
	if err != nil {
		t.Fatalf("%v: %v", format, err)
	}
	heard := heardRows(m)
	if heard != nil {
		q.Frames = int32(m.Config().Hearing.Rows)
	}
	exec, err := be.Compile(built.Program, kernels.Limits{Tokens: 1, Seqs: 1, Rows: 1, Frames: int(q.Frames)})
	if err != nil {
		t.Fatalf("%v: %v", format, err)
	}
	var out kernels.Result
	step := &kernels.Step{Tokens: []int32{id}, Positions: []int32{0}, Rows: []int32{0}, WantLogits: true, Seqs: []kernels.Seq{q}, Features: heard}
	if err := exec.Run(step, &out); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(out.Logits[0])
}

// near checks that a format's logits are float32's but for its rounding.
func isNear(t *testing.T, name string, m *Model, format kernels.Format, id int32, want []float32, most float64) {
	t.Helper()
	got := first(t, m, format, id)
	if d := difference([][]float32{got}, [][]float32{want}); !(d > 0 && d <= most) {
		t.Errorf("%s as %v: differs by %.2g of the greatest; want more than 0 and at most %g", name, format, d, most)
	}
}

// TestFormats: every architecture can be kept in every format, and then
// differs from float32 by rounding.
func TestFormats(t *testing.T) {
	for _, arch := range architectures() {
		if arch.kind != Generate {
			continue
		}
		f := readFixture(t, arch.fixture)
		m := openFixture(t, f.Config, f.Tensors)
		want := first(t, m, kernels.FormatF32, f.IDs[0])
		// Experts may be chosen otherwise when inputs are rounded; then the
		// difference is that of another expert.
		loose := 1.0
		if strings.Contains(arch.features, "experts") {
			loose = 10
		}
		isNear(t, arch.name, m, kernels.FormatBF16, f.IDs[0], want, 0.03*loose)
		isNear(t, arch.name, m, kernels.FormatF16, f.IDs[0], want, 0.01*loose)
		isNear(t, arch.name, m, kernels.FormatInt8, f.IDs[0], want, 0.05*loose)
		isNear(t, arch.name, m, kernels.FormatInt4, f.IDs[0], want, 0.03*loose) // 16 bits: too few columns
		isNear(t, arch.name, m, kernels.FormatFP8, f.IDs[0], want, 0.2*loose)
	}
}

// TestQuantisedFormats: a quantised checkpoint is handed to the backend as it
// is, and means the same as when it is worked out to float32.
func TestQuantisedFormats(t *testing.T) {
	for _, name := range []string{quantisedFixture, quantisedExperts, quantisedGroups, "gpt_oss"} {
		f := readFixture(t, name)
		for _, v := range f.Variants {
			if v.Patch["quantization_config"] == nil {
				continue
			}
			config := maps.Clone(f.Config)
			maps.Copy(config, v.Patch)
			tensors := v.changed(f)
			m := openFixture(t, config, tensors)
			want := first(t, m, kernels.FormatF32, f.IDs[0])
			isNear(t, v.Name, m, kernels.FormatBF16, f.IDs[0], want, 0.05)
			if m.WeightBytes(kernels.FormatBF16) >= m.WeightBytes(kernels.FormatF32)/2 {
				t.Errorf("%s: %d bytes in its own format, %d as float32", v.Name, m.WeightBytes(kernels.FormatBF16), m.WeightBytes(kernels.FormatF32))
			}
			if name == quantisedGroups { // as they are, instead of int8
				eight := m.WeightBytes(kernels.FormatBF16)
				m.FineGroups()
				isNear(t, v.Name+", as it is", m, kernels.FormatBF16, f.IDs[0], want, 0.05)
				if m.WeightBytes(kernels.FormatBF16) >= eight {
					t.Errorf("%s: %d bytes as it is, %d as int8", v.Name, m.WeightBytes(kernels.FormatBF16), eight)
				}
			}
		}
	}
}

// TestFormatMismatch: a format that the checkpoint cannot be kept in is refused
// in vLLM's words.
func TestFormatMismatch(t *testing.T) {
	f := readFixture(t, quantisedFixture)
	build := func(config map[string]any, tensors []fixtureTensor, format kernels.Format) error {
		m := openFixture(t, config, tensors)
		specs := m.KVGroups(blockTokens, kernels.BF16)
		specs[0].Blocks = 1
		_, err := m.Build(ref.New(), BuildOptions{Format: format, KV: specs})
		return err
	}
	mismatch := func(v variant, format kernels.Format, have string) {
		t.Helper()
		err := build(v.config(f), v.changed(f), format)
		if have == "" && err != nil || have != "" && (err == nil || !strings.Contains(err.Error(), "model config ("+have+") does not match")) {
			t.Errorf("%s as %v: got %v; want a mismatch of %q", v.Name, format, err, have)
		}
	}
	mismatch(variant{Name: "floats"}, kernels.FormatGPTQ, "none")
	mismatch(variant{Name: "floats"}, kernels.FormatInt4, "")
	for _, v := range f.Variants {
		switch method := v.Patch["quantization_config"].(map[string]any)["quant_method"]; method {
		case "gptq":
			mismatch(v, kernels.FormatGPTQ, "")
			mismatch(v, kernels.FormatAWQ, "gptq")
			mismatch(v, kernels.FormatInt4, "gptq")
		case "awq":
			mismatch(v, kernels.FormatAWQ, "")
			mismatch(v, kernels.FormatFP8, "awq")
		case "fp8":
			mismatch(v, kernels.FormatFP8, "")
			mismatch(v, kernels.FormatInt8, "")
			mismatch(v, kernels.FormatGPTQ, "fp8")
		}
	}
}

// TestHostileQuantisation: what of quantization_config is not known is refused.
func TestHostileQuantisation(t *testing.T) {
	f := readFixture(t, quantisedFixture)
	refused := func(want string, fields map[string]any) {
		t.Helper()
		config := maps.Clone(f.Config)
		config["quantization_config"] = fields
		if _, err := OpenFS(folder(t, config, f.Tensors)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v; want %q", fields, err, want)
		}
	}
	group := func(bits int, kind, strategy string, more map[string]any) map[string]any {
		w := map[string]any{"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": true, "group_size": 128}
		maps.Copy(w, more)
		return map[string]any{"group_0": map[string]any{"weights": w}}
	}

	refused(`quant_method "" is not supported`, map[string]any{})
	refused("3 bits are not supported", map[string]any{"quant_method": "gptq", "bits": 3, "group_size": 128})
	refused("group_size 0 is not supported", map[string]any{"quant_method": "gptq", "bits": 4})
	refused("group_size -1 is not supported", map[string]any{"quant_method": "awq", "bits": 4, "group_size": -1})
	refused("group_size 48 is not supported; supported are 32, 64 and multiples of 128", map[string]any{"quant_method": "awq", "bits": 4, "group_size": 48})
	refused(`checkpoint_format "gptq_v2"`, map[string]any{"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "gptq_v2"})
	refused(`version "gemv"`, map[string]any{"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"})
	refused("blocks of [128]", map[string]any{"quant_method": "fp8", "weight_block_size": []int{128}})
	refused("blocks of [0 128]", map[string]any{"quant_method": "fp8", "weight_block_size": []int{0, 128}})
	refused(`fmt "e5m2"`, map[string]any{"quant_method": "fp8", "fmt": "e5m2"})
	refused("0 config_groups", map[string]any{"quant_method": "compressed-tensors", "format": "float-quantized"})
	refused("zero points", map[string]any{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": group(4, "int", "group", map[string]any{"symmetric": false})})
	refused(`format "marlin-24"`, map[string]any{"quant_method": "compressed-tensors", "format": "marlin-24", "config_groups": group(4, "int", "group", nil)})
	refused("with 8 bits of \"int\"", map[string]any{"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": group(8, "int", "channel", nil)})

	// The codes are there, but their scales are not of this shape.
	for _, v := range f.Variants {
		config := maps.Clone(f.Config)
		maps.Copy(config, v.Patch)
		var tensors []fixtureTensor
		for _, x := range v.changed(f) {
			if strings.Contains(x.name, "layers.1.mlp.down_proj") && strings.Contains(x.name, "scale") {
				x.shape = []int{3}
			}
			tensors = append(tensors, x)
		}
		if _, err := OpenFS(folder(t, config, tensors)); err == nil || !strings.Contains(err.Error(), "scale") || !strings.Contains(err.Error(), "has shape [3]") {
			t.Errorf("%s: got %v; want the scales' shape", v.Name, err)
		}
	}
}
