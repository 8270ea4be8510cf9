package model

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"roundhouse/kernels"
)

// TestUnread: weights of the model that nothing reads are told by name, and no
// other file makes anything of them.
func TestUnread(t *testing.T) {
	extra := func(name string) fixtureTensor {
		return fixtureTensor{name: name, shape: []int{2}, scale: 1, kind: "F32"}
	}
	f := func(arch, fixture string, more []string, want ...string) {
		t.Helper()
		base := readFixture(t, fixture)
		tensors := slices.Clone(base.Tensors)
		for _, name := range more {
			tensors = append(tensors, extra(name))
		}
		if got := openFixture(t, base.Config, tensors).Unread(); !slices.Equal(got, want) {
			t.Errorf("%s: nothing reads %v; want %v", arch, got, want)
		}
	}
	for _, arch := range architectures() {
		if arch.kind == Generate {
			f(arch.name, arch.fixture, nil)
		}
	}
	f("Llama", "llama", []string{"model.layers.9.mlp.up_proj.weight", "model.layers.0.self_attn.rotary_emb.inv_freq", "adapter.weight"}, "adapter.weight", "model.layers.9.mlp.up_proj.weight")
	f("Gemma 3 with images", "gemma3_vl", []string{"vision_tower.x.weight", "multi_modal_projector.x", "language_model.model.layers.9.x"}, "language_model.model.layers.9.x")
	f("Qwen3.5", "qwen3_5", []string{"mtp.fc.weight"})
}

// TestNamedQuantisation: a quantization_config over weights that are all floats is
// refused, as is one that no weight follows.
func TestNamedQuantisation(t *testing.T) {
	base := readFixture(t, "llama")
	for _, quant := range []map[string]any{
		{"quant_method": "gptq", "bits": 4, "group_size": 128},
		{"quant_method": "awq", "bits": 4, "group_size": 128},
		{"quant_method": "fp8"},
	} {
		config := maps.Clone(base.Config)
		config["quantization_config"] = quant
		if _, err := OpenFS(folder(t, config, base.Tensors)); err == nil || !strings.Contains(err.Error(), "all weights are stored as floats") {
			t.Errorf("%v: got %v", quant, err)
		}
	}
}

// TestWording: an error says what is wrong in the words of the file.
func TestWording(t *testing.T) {
	base := readFixture(t, "qwen3_moe")
	f := func(change func(config map[string]any), want string) {
		t.Helper()
		config := maps.Clone(base.Config)
		change(config)
		_, err := OpenFS(folder(t, config, base.Tensors))
		if err == nil || err.Error() != "config.json: "+want {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	f(func(c map[string]any) { delete(c, "num_experts"); c["num_experts_per_tok"] = 999 },
		"999 of 128 experts with 32 columns; want 1 to 4096 experts, and no more chosen than there are")
	f(func(c map[string]any) { c["vocab_size"] = "72" }, "vocab_size is string, which is not what belongs there (a whole number)")
	f(func(c map[string]any) { c["num_hidden_layers"] = 0 }, "num_hidden_layers is 0 or absent; want 1 to 1024")
	f(func(c map[string]any) { c["rope_parameters"] = map[string]any{"rope_theta": 0, "rope_type": "default"} }, "rope_parameters: rope_theta is 0; want 1 to 1e12, or leave it out")
	f(func(c map[string]any) { c["rope_scaling"] = map[string]any{"partial_rotary_factor": 0} }, "rope_scaling: partial_rotary_factor is 0; want 0.001 to 1, or leave it out")
	fsys := folder(t, base.Config, base.Tensors)
	fsys["config.json"].Data = []byte(`[{}]`)
	if _, err := OpenFS(fsys); err == nil || err.Error() != "config.json: found array in place of an object" {
		t.Errorf("got %v", err)
	}
}

// TestGemmaCap: where transformers and vLLM differ, in the soft cap of a Gemma 3
// with images, the model is served as in vLLM.
func TestGemmaCap(t *testing.T) {
	base := readFixture(t, "gemma3_vl")
	config := maps.Clone(base.Config)
	text := maps.Clone(config["text_config"].(map[string]any))
	text["final_logit_softcapping"] = 30
	config["text_config"] = text
	m := openFixture(t, config, base.Tensors)
	b := m.count(kernels.FormatBF16)
	g := newGraph(m.settings, b, m.groups, nil)
	m.arch.record(g)
	caps := []float32{}
	for _, op := range g.prog.Ops {
		if s, ok := op.(*kernels.Sample); ok {
			caps = append(caps, s.SoftCap)
		}
	}
	if !reflect.DeepEqual(caps, []float32{30}) {
		t.Errorf("caps %v; want 30", caps)
	}
}
