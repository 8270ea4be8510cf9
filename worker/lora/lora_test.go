package lora

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

// folder is an adapter of two modules of rank 2, changed as asked.
func folder(change func(config map[string]any, tensors map[string][]int)) fstest.MapFS {
	config := map[string]any{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": "org/base"}
	tensors := map[string][]int{}
	for _, module := range []string{"model.layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj"} {
		tensors[before+module+behindA], tensors[before+module+behindB] = []int{2, 4}, []int{6, 2}
	}
	if change != nil {
		change(config, tensors)
	}
	data, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	return fstest.MapFS{configName: {Data: data}, weightsName: {Data: safetensors(tensors, "F32", 4)}}
}

// safetensors is a file of zeros.
func safetensors(tensors map[string][]int, dtype string, size int) []byte {
	header, data := map[string]any{}, []byte(nil)
	for name, shape := range tensors {
		n := size
		for _, d := range shape {
			n *= d
		}
		header[name] = map[string]any{"dtype": dtype, "shape": shape, "data_offsets": []int{len(data), len(data) + n}}
		data = append(data, make([]byte, n)...)
	}
	head, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...)
}

func TestOpen(t *testing.T) {
	f := func(what string, factors []float64, change func(config map[string]any, tensors map[string][]int)) {
		t.Helper()
		a, err := Open(folder(change))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		defer a.Close()
		if len(a.Modules) != 2 || a.Modules[0].Name != "model.layers.0.self_attn.q_proj" || a.Modules[1].Name != "model.layers.1.mlp.up_proj" {
			t.Errorf("%s: modules %+v", what, a.Modules)
			return
		}
		for i, want := range factors {
			if got := float64(a.Modules[i].Factor); math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: the factor of %s is %v; want %v", what, a.Modules[i].Name, got, want)
			}
		}
	}
	f("as it is", []float64{2, 2}, nil)
	f("rank-stabilised", []float64{4 / math.Sqrt2, 4 / math.Sqrt2}, func(c map[string]any, _ map[string][]int) { c["use_rslora"] = true })
	f("without lora_alpha", []float64{4, 4}, func(c map[string]any, _ map[string][]int) { delete(c, "lora_alpha") })
	f("alpha by pattern", []float64{2, 0.5}, func(c map[string]any, _ map[string][]int) {
		c["alpha_pattern"] = map[string]float64{`layers\.[12]\.mlp\.up_proj`: 1, "other": 7}
	})
	f("a pattern that is no end of a name", []float64{2, 2}, func(c map[string]any, _ map[string][]int) {
		c["alpha_pattern"] = map[string]float64{"proj": 1}
	})
	f("rank by pattern", []float64{2, 4.0 / 3}, func(c map[string]any, tensors map[string][]int) {
		c["rank_pattern"] = map[string]int{"up_proj": 3}
		tensors[before+"model.layers.1.mlp.up_proj"+behindA] = []int{3, 4}
		tensors[before+"model.layers.1.mlp.up_proj"+behindB] = []int{6, 3}
	})
	f("relatives that are off", []float64{2}, func(c map[string]any, _ map[string][]int) {
		c["use_dora"], c["alora_invocation_tokens"], c["loftq_config"], c["init_lora_weights"] = false, nil, map[string]any{}, "gaussian"
	})
}

func TestRefused(t *testing.T) {
	f := func(want string, change func(config map[string]any, tensors map[string][]int)) {
		t.Helper()
		a, err := Open(folder(change))
		if err == nil {
			_ = a.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v; want one with %q", err, want)
		}
	}
	field := func(want, name string, value any) {
		t.Helper()
		f(want, func(c map[string]any, _ map[string][]int) { c[name] = value })
	}
	field("peft_type is \"LOHA\"", "peft_type", "LOHA")
	field("DoRA is not supported", "use_dora", true)
	field("adapters with biases", "bias", "all")
	field("adapters with biases", "lora_bias", true)
	field("modules_to_save is [\"lm_head\"]", "modules_to_save", []string{"lm_head"})
	field("fan_in_fan_out", "fan_in_fan_out", true)
	field("changed the model's own weights", "init_lora_weights", "pissa_niter_16")
	field("alora_invocation_tokens is [1,2]", "alora_invocation_tokens", []int{1, 2})
	field("layer_replication is", "layer_replication", [][]int{{0, 4}})
	field("r is 0", "r", 0)
	field("cannot unmarshal", "r", "2")
	field("lora_alpha is 1e+300", "lora_alpha", 1e300)
	field("no regular expression", "rank_pattern", map[string]int{"(": 2})
	field("two patterns fit", "alpha_pattern", map[string]int{"q_proj": 2, "self_attn.q_proj": 3})
	field("has rank 0", "rank_pattern", map[string]int{"q_proj": 0})
	field("gives it rank 3", "r", 3)
	tensor := func(want, name string, shape []int) {
		t.Helper()
		f(want, func(_ map[string]any, tensors map[string][]int) { tensors[name] = shape })
	}
	tensor("lora_magnitude_vector is not supported", before+"model.layers.0.self_attn.q_proj.lora_magnitude_vector", []int{6})
	tensor("lora_embedding_A is not supported", before+"model.embed_tokens.lora_embedding_A", []int{2, 6})
	tensor("model.x.lora_B.weight is missing", before+"model.x"+behindA, []int{2, 4})
	tensor("two dimensions", before+"model.layers.0.self_attn.q_proj"+behindA, []int{2, 2, 2})
	f("has no tensors", func(_ map[string]any, tensors map[string][]int) { clear(tensors) })

	missing := folder(nil)
	delete(missing, weightsName)
	missing[pickleName] = &fstest.MapFile{}
	if _, err := Open(missing); err == nil || !strings.Contains(err.Error(), "is a pickle") {
		t.Errorf("a pickle gave %v", err)
	}
	delete(missing, configName)
	if _, err := Open(missing); err == nil || !strings.Contains(err.Error(), configName) {
		t.Errorf("an empty folder gave %v", err)
	}
	whole := folder(nil)
	whole[weightsName] = &fstest.MapFile{Data: safetensors(map[string][]int{before + "x" + behindA: {2, 4}, before + "x" + behindB: {6, 2}}, "I64", 8)}
	if _, err := Open(whole); err == nil || !strings.Contains(err.Error(), "is stored as I64") {
		t.Errorf("integers gave %v", err)
	}
}

// FuzzOpen: whatever the two files hold, an adapter is whole or an error.
func FuzzOpen(f *testing.F) {
	whole := folder(nil)
	f.Add(whole[configName].Data, whole[weightsName].Data)
	f.Add([]byte(`{"peft_type":"LORA","r":1,"rank_pattern":{"x":2}}`), safetensors(map[string][]int{"x" + behindA: {2, 1}, "x" + behindB: {1, 2}}, "F16", 2))
	f.Add([]byte(`{"peft_type":"LORA","use_dora":true}`), []byte("{}"))
	f.Fuzz(func(t *testing.T, config, tensors []byte) {
		a, err := Open(fstest.MapFS{configName: {Data: config}, weightsName: {Data: tensors}})
		if err != nil {
			return
		}
		defer a.Close()
		for _, m := range a.Modules {
			rank := m.A.Shape[0]
			if m.B.Shape[1] != rank || rank < 1 || rank > a.Rank() || m.Factor != m.Factor {
				t.Fatalf("module %+v of rank %d", m, a.Rank())
			}
			if data, err := m.A.Data(); err != nil || int64(len(data)) != m.A.Bytes() {
				t.Fatalf("%s has %d bytes: %v", m.Name, len(data), err)
			}
		}
	})
}
