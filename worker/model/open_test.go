package model

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// TestHostileConfig is case 93 of the attack list, and what else a
// config.json can get wrong: the error names the field and what was found.
func TestHostileConfig(t *testing.T) {
	base := readFixture(t, "llama")
	f := func(field string, value any, want string) {
		t.Helper()
		config := maps.Clone(base.Config)
		config[field] = value
		_, err := OpenFS(folder(t, config, base.Tensors))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "config.json") {
			t.Errorf("%s = %v: got %v; want an error of config.json with %q", field, value, err, want)
		}
	}
	scaling := func(more map[string]any) map[string]any {
		m := map[string]any{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32}
		maps.Copy(m, more)
		return m
	}

	f("vocab_size", 1<<40, "vocab_size is 1099511627776; want 1 to")
	f("vocab_size", 0, "vocab_size is 0")
	f("vocab_size", -1, "vocab_size is -1")
	f("vocab_size", "72", "vocab_size")
	f("vocab_size", 1e30, "vocab_size")
	f("num_hidden_layers", 0, "num_hidden_layers is 0")
	f("num_hidden_layers", 1_000_000_000, "num_hidden_layers is 1000000000; want 1 to 1024")
	f("hidden_size", 1<<30, "hidden_size is")
	f("num_attention_heads", 0, "num_attention_heads is 0")
	f("num_key_value_heads", 3, "num_attention_heads 4 is no multiple of num_key_value_heads 3")
	f("head_dim", -2, "head_dim is -2")
	f("rms_norm_eps", -1, "rms_norm_eps is -1")
	f("rms_norm_eps", 0, "rms_norm_eps is 0")
	f("rope_theta", 1e300, "rope_theta is 1e+300")
	f("rope_theta", -1, "rope_theta is -1")
	f("rope_scaling", scaling(map[string]any{"factor": 0}), "rope_scaling: factor is 0")
	f("rope_scaling", scaling(map[string]any{"high_freq_factor": 1}), "high_freq_factor - low_freq_factor is 0")
	f("rope_scaling", scaling(map[string]any{"rope_type": "yarn", "factor": 1e9}), "rope_scaling: factor is 1e+09")
	f("rope_scaling", scaling(map[string]any{"rope_type": "longrope"}), `rope_type "longrope" is not known; known are default, linear, llama3, yarn`)
	f("rope_scaling", scaling(map[string]any{"rope_type": "dynamic", "factor": 0.5}), "rope_scaling: factor is 0.5")
	f("rope_scaling", scaling(map[string]any{"rope_type": "default", "mrope_section": []int{1, 2}}), "mrope_section")
	f("rope_scaling", []int{1}, "rope_scaling")
	f("rope_scaling", "yarn", "rope_scaling")
	f("head_dim", 1, "1 of 1 columns of a head cannot turn in pairs")
	f("head_dim", 17, "17 of 17 columns of a head cannot turn in pairs")
	f("hidden_act", "gelu", `hidden_act is "gelu"; this architecture is known with "silu"`)
	f("eos_token_id", 72, "token id 72")
	f("eos_token_id", []int{2, -1}, "token id -1")
	f("eos_token_id", "</s>", "want a token id")
	f("eos_token_id", 1<<40, "want a token id")
	f("layer_types", []string{"full_attention"}, "layer_types names 1 layers of 4")
	f("layer_types", []string{"full_attention", "full_attention", "full_attention", "chunked_attention"}, `layer_types[3] is "chunked_attention"`)
	f("layer_types", []string{"full_attention", "linear_attention", "full_attention", "full_attention"}, `layer_types[1] is "linear_attention"`)
	f("sliding_window", -5, "sliding_window is -5")
	f("quantization_config", map[string]any{"quant_method": "bitsandbytes"}, `quant_method "bitsandbytes" is not supported; supported are`)
	f("quantization_config", map[string]any{"quant_method": "mxfp4"}, `quant_method "mxfp4" is not supported for LlamaForCausalLM`)
	f("architectures", []string{}, "architectures is missing or empty")
	f("architectures", []string{"LlamaForCausalLLM"}, `"LlamaForCausalLLM" is not supported; the nearest that are: LlamaForCausalLM, `)
	f("architectures", []string{"Qwen3MoEForCausalLM"}, "the nearest that are: Qwen3MoeForCausalLM, ")
	f("architectures", []string{strings.Repeat("x", 1<<20)}, "is not supported")
	f("architectures", "LlamaForCausalLM", "architectures")
}

func TestConfigFile(t *testing.T) {
	f := func(fsys fstest.MapFS, want string) {
		t.Helper()
		if _, err := OpenFS(fsys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want an error with %q", err, want)
		}
	}
	base := readFixture(t, "llama")
	with := func(name, text string) fstest.MapFS {
		fsys := folder(t, base.Config, base.Tensors)
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
		return fsys
	}
	without := func(name string) fstest.MapFS {
		fsys := folder(t, base.Config, base.Tensors)
		delete(fsys, name)
		return fsys
	}

	f(without("config.json"), "cannot read config.json")
	f(without("model.safetensors"), "no weights")
	f(with("config.json", ""), "config.json: unexpected end of JSON input")
	f(with("config.json", `{"architectures":["LlamaForCausalLM"]`), "config.json")
	f(with("config.json", "["+strings.Repeat("[", 20_000)), "config.json")
	f(with("config.json", strings.Repeat(" ", maxConfig+1)), "config.json has 4194305 bytes, at most 4194304 are read")
	f(with("model.safetensors", "\x10"), "model.safetensors: 1 bytes are no safetensors file")
	f(with("generation_config.json", "{"), "generation_config.json")
	f(with("generation_config.json", `{"eos_token_id":[2,99]}`), "generation_config.json: token id 99 is not below vocab_size 72")
	f(with("generation_config.json", `{"temperature":-1}`), "generation_config.json: temperature is -1")
	f(with("generation_config.json", `{"top_p":7}`), "top_p is 7")
	f(with("generation_config.json", `{"top_k":-7}`), "top_k is -7")
}

// TestAllFaultsAtOnce: one error lists every weight that is not as it should
// be, by name, before anything is loaded.
func TestAllFaultsAtOnce(t *testing.T) {
	base := readFixture(t, "qwen3_moe")
	var tensors []fixtureTensor
	for _, x := range base.Tensors {
		switch x.name {
		case "model.norm.weight", "model.layers.2.mlp.experts.3.gate_proj.weight", "model.layers.2.mlp.experts.3.up_proj.weight":
			continue
		case "model.layers.0.self_attn.q_norm.weight":
			x.shape = []int{12, 2}
		case "lm_head.weight":
			x.shape = []int{71, 64}
		}
		tensors = append(tensors, x)
	}
	_, err := OpenFS(folder(t, base.Config, tensors))
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{
		"5 weights are not as config.json says",
		"model.norm.weight is missing",
		"model.layers.2.mlp.experts.3.gate_proj.weight is missing",
		"model.layers.2.mlp.experts.3.up_proj.weight is missing",
		"model.layers.0.self_attn.q_norm.weight has shape [12 2]; want [24]",
		"lm_head.weight has shape [71 64]; want [72 64]",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

// TestMillionsMissing: a small file that promises an enormous model is refused
// without listing it.
func TestMillionsMissing(t *testing.T) {
	base := readFixture(t, "qwen3_moe")
	config := maps.Clone(base.Config)
	maps.Copy(config, map[string]any{"num_hidden_layers": 1024, "num_experts": 4096})
	_, err := OpenFS(folder(t, config, base.Tensors))
	if err == nil || !strings.Contains(err.Error(), "weights are not as config.json says") || len(err.Error()) > 10_000 {
		t.Fatalf("got %.200v; want a short list", err)
	}
}

// FuzzConfig: whatever config.json says, opening ends with a model or an error.
func FuzzConfig(f *testing.F) {
	var weights []byte
	for _, arch := range architectures() {
		file, err := os.ReadFile("testdata/" + arch.fixture + ".json")
		if err != nil {
			f.Fatal(err)
		}
		var fixture struct {
			Config  json.RawMessage
			Tensors []fixtureTensor
		}
		if err := json.Unmarshal(file, &fixture); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(fixture.Config))
		if arch.fixture == "llama" {
			weights = safetensors(fixture.Tensors)
		}
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		m, err := OpenFS(fstest.MapFS{"config.json": {Data: config}, "model.safetensors": {Data: weights}})
		if err != nil {
			return
		}
		defer m.Close()
		if m.WeightBytes(kernels.FormatInt4) <= 0 {
			t.Errorf("a model of no weights: %s", config)
		}
	})
}

// TestConfig: what others are told of a model.
func TestConfig(t *testing.T) {
	base := readFixture(t, "gemma3")
	fsys := folder(t, base.Config, base.Tensors)
	fsys["generation_config.json"] = &fstest.MapFile{Data: []byte(`{"bos_token_id":3,"eos_token_id":[5,2,7],"temperature":0.6,"top_k":20,"top_p":0.95,"min_p":0,"repetition_penalty":1.05}`)}
	m, err := OpenFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := m.Config()
	if got := []any{c.Architecture, c.ModelType, c.Kind, c.DType, c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, *c.BOS}; !reflect.DeepEqual(got,
		[]any{"Gemma3ForCausalLM", "gemma3_text", Generate, "float32", 72, 64, 4, 4, 2, 24, int32(1)}) {
		t.Errorf("config: %v", got)
	}
	if !reflect.DeepEqual(c.EOS, []int32{5, 2, 7}) {
		t.Errorf("EOS %v; want 5, 2 and 7", c.EOS)
	}
	if s := c.Sampling; *s.Temperature != 0.6 || *s.TopK != 20 || *s.TopP != 0.95 || *s.MinP != 0 || *s.RepetitionPenalty != 1.05 {
		t.Errorf("sampling %+v", s)
	}
	// Layers 0, 1 and 3 have a window of 24; layer 2 sees all.
	want := []kernels.KVSpec{
		{Layers: 3, BlockTokens: 32, Heads: 2, KeyDim: 24, ValueDim: 24, Type: kernels.BF16},
		{Layers: 1, BlockTokens: 32, Heads: 2, KeyDim: 24, ValueDim: 24, Type: kernels.BF16},
	}
	if got := m.KVGroups(32, kernels.BF16); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(c.Windows, []int{24, 0}) {
		t.Errorf("KV groups %+v with windows %v", got, c.Windows)
	}
}

// TestPositions: scaling that stretches positions lengthens what is served.
func TestPositions(t *testing.T) {
	base := readFixture(t, "llama")
	f := func(scaling any, want int) {
		t.Helper()
		config := maps.Clone(base.Config)
		config["rope_scaling"] = scaling
		if got := openFixture(t, config, base.Tensors).Config().MaxPositions; got != want {
			t.Errorf("%v: %d positions; want %d", scaling, got, want)
		}
	}
	f(nil, 256)
	f(map[string]any{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 256}, 1024)
	f(map[string]any{"rope_type": "yarn", "factor": 4}, 1024)
	f(map[string]any{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 64}, 256)
	f(map[string]any{"type": "linear", "factor": 2.5}, 640)
	f(map[string]any{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32}, 256)
}

// TestWeightBytes: the plan is what a backend then takes; tied embeddings
// count once.
func TestWeightBytes(t *testing.T) {
	base := readFixture(t, "llama")
	m := openFixture(t, base.Config, base.Tensors)
	var n int64
	for _, x := range base.Tensors {
		size := int64(1)
		for _, d := range x.shape {
			size *= int64(d)
		}
		n += size
	}
	if got := m.WeightBytes(kernels.FormatF32); got != 4*n {
		t.Errorf("float32: %d bytes; want %d", got, 4*n)
	}
	norms := int64(64 * 9)
	if got := m.WeightBytes(kernels.FormatBF16); got != 2*(n-norms)+4*norms {
		t.Errorf("bfloat16: %d bytes; want %d", got, 2*(n-norms)+4*norms)
	}
	tied := maps.Clone(base.Config)
	tied["tie_word_embeddings"] = true
	var tensors []fixtureTensor
	for _, x := range base.Tensors {
		if x.name != "lm_head.weight" {
			tensors = append(tensors, x)
		}
	}
	if got := openFixture(t, tied, tensors).WeightBytes(kernels.FormatF32); got != 4*(n-72*64) {
		t.Errorf("tied: %d bytes; want %d", got, 4*(n-72*64))
	}
}

// TestChangedWhileLoading: a model that was exchanged under a running load is
// refused, since half of it would be of the one and half of the other.
func TestChangedWhileLoading(t *testing.T) {
	base := readFixture(t, "llama")
	dir := t.TempDir()
	for name, file := range folder(t, base.Config, base.Tensors) {
		if err := os.WriteFile(filepath.Join(dir, name), file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	build := func() error {
		be := ref.New()
		defer be.Close()
		specs := m.KVGroups(16, kernels.F32)
		specs[0].Blocks = 1
		_, err := m.Build(be, BuildOptions{Format: kernels.FormatF32, KV: specs})
		return err
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "model.safetensors"), 8192); err != nil {
		t.Fatal(err)
	}
	if err := build(); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Fatalf("got %v; want: cut short", err)
	}
	if _, err := m.Build(ref.New(), BuildOptions{}); err == nil || !strings.Contains(err.Error(), "0 groups; the model has 1") {
		t.Fatalf("got %v; want: the number of groups", err)
	}
}

// TestGeneration takes another folder's generation_config.json in place of the
// model's own.
func TestGeneration(t *testing.T) {
	base := readFixture(t, "llama")
	m := openFixture(t, base.Config, base.Tensors)
	other := fstest.MapFS{"generation_config.json": {Data: []byte(`{"temperature":0.25,"eos_token_id":[9]}`)}}
	if err := m.Generation(other); err != nil {
		t.Fatal(err)
	}
	c := m.Config()
	if c.Sampling.Temperature == nil || *c.Sampling.Temperature != 0.25 || c.Sampling.TopP != nil || c.EOS[0] != 9 {
		t.Errorf("sampling %+v, ends %v; want the other folder's", c.Sampling, c.EOS)
	}
	if err := m.Generation(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without the file: %v", err)
	}
}

// The experts of a Qwen3 mixture are counted under either of the names that
// transformers has written.
func TestExpertNames(t *testing.T) {
	f := readFixture(t, "qwen3_moe")
	for _, name := range []string{"num_experts", "num_local_experts"} {
		config := maps.Clone(f.Config)
		delete(config, "num_experts")
		config[name] = f.Config["num_experts"]
		openFixture(t, config, f.Tensors)
	}
}
