package model

import (
	"encoding/json"
	"maps"
	"math"
	"testing"
	"testing/fstest"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/worker/weights"
)

// benchShape is what every family is measured at: about 13 million numbers in
// the layers of a dense one.
var benchShape = map[string]any{
	"vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 4,
	"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 4096,
	"num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
	"sliding_window": 256, "rope_scaling": nil, "layer_types": nil,
}

// shapedModel is a family at a shape, its weights a hash.
func shapedModel(b testing.TB, arch architecture, shape map[string]any) *Model {
	b.Helper()
	f := &fixture{}
	readJSON(b, arch.fixture, f)
	config := maps.Clone(f.Config)
	for field, value := range shape {
		if _, ok := config[field]; ok {
			config[field] = value
		}
	}
	data, err := json.Marshal(config)
	if err != nil {
		b.Fatal(err)
	}
	fsys := fstest.MapFS{"config.json": {Data: data}, "model.safetensors": {Data: safetensors(nil)}}
	s, _, err := readSettings(fsys, nil)
	if err != nil {
		b.Fatal(err)
	}
	// Record without weights to learn which there should be.
	empty, err := weights.OpenFS(fsys)
	if err != nil {
		b.Fatal(err)
	}
	want := map[string]fixtureTensor{}
	g := newGraph(s, &binder{set: empty, bound: map[string]kernels.Weight{}, asked: func(p piece) {
		scale := 0.5
		if n := len(p.shape); n > 1 {
			scale = 1.7 / math.Sqrt(float64(p.shape[n-1]))
		}
		want[p.name] = fixtureTensor{name: p.name, shape: p.shape, base: 0, scale: float32(scale), kind: "F32"}
	}}, arch.groups(s), nil)
	arch.record(g)
	if arch.tower != nil && !arch.seeing {
		arch.tower(g)
	}
	var tensors []fixtureTensor
	for _, t := range want {
		tensors = append(tensors, t)
	}
	fsys["model.safetensors"] = &fstest.MapFile{Data: safetensors(tensors)}
	m, err := OpenFS(fsys)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() })
	return m
}

// BenchmarkModels measures each family that generates at one shape, on all
// processors: the load, a prompt of 512 tokens in one step, and one token
// after it.
//
//	go test ./worker/model -run '^$' -bench Models -benchtime 3x
func BenchmarkModels(b *testing.B) {
	for _, arch := range architectures() {
		if arch.kind != Generate || arch.seeing || arch.tower != nil {
			continue
		}
		b.Run(arch.name, func(b *testing.B) {
			m := shapedModel(b, arch, benchShape)
			b.Run("load", func(b *testing.B) {
				b.SetBytes(m.read)
				for b.Loop() {
					benchBuild(b, m)()
				}
			})
			for _, tokens := range []int{512, 1} {
				name := map[int]string{512: "prompt", 1: "token"}[tokens]
				b.Run(name, func(b *testing.B) { benchStep(b, m, tokens) })
			}
		})
	}
}

// benchBuild loads a model in bfloat16 and returns how to close it.
func benchBuild(b *testing.B, m *Model) (closeIt func()) {
	b.Helper()
	_, _, closeIt = benchBackend(b, m)
	return closeIt
}

func benchBackend(b *testing.B, m *Model) (kernels.Backend, *Built, func()) {
	b.Helper()
	be, err := cpu.New(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	specs := m.KVGroups(32, kernels.BF16)
	for i := range specs {
		specs[i].Blocks = 20
	}
	built, err := m.Build(be, BuildOptions{Format: kernels.FormatBF16, KV: specs})
	if err != nil {
		b.Fatal(err)
	}
	return be, built, func() { _ = be.Close() }
}

func benchStep(b *testing.B, m *Model, tokens int) {
	be, built, closeIt := benchBackend(b, m)
	defer closeIt()
	exec, err := be.Compile(built.Program, kernels.Limits{Tokens: 512, Seqs: 1, Rows: 1})
	if err != nil {
		b.Fatal(err)
	}
	var table []int32
	for i := range 20 {
		table = append(table, int32(i))
	}
	step := func(first, count int) *kernels.Step {
		q := kernels.Seq{Count: int32(count), Context: int32(first + count)}
		for range built.KV {
			q.Blocks = append(q.Blocks, table)
		}
		s := &kernels.Step{Seqs: []kernels.Seq{q}, Rows: []int32{int32(count - 1)}, Sampling: []kernels.Sampling{{TopP: 1}}}
		for i := range count {
			s.Tokens = append(s.Tokens, int32((first+i)*7%m.config.Vocab))
			s.Positions = append(s.Positions, int32(first+i))
		}
		return s
	}
	var out kernels.Result
	if err := exec.Run(step(0, 512), &out); err != nil {
		b.Fatal(err)
	}
	next := step(0, 512)
	if tokens == 1 {
		next = step(512, 1)
	}
	b.ResetTimer()
	for b.Loop() {
		if err := exec.Run(next, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tokens)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}
