package model

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// pooledFixture is the golden file of a model that embeds or scores.
type pooledFixture struct {
	Transformers string
	Config       map[string]any
	Files        map[string]string
	Tensors      []fixtureTensor
	Sequences    []fixtureSequence
	Rows         string
	Variants     []struct {
		Name    string
		Patch   map[string]any
		Files   map[string]string
		Tensors []fixtureTensor
		Without []string
		Rows    string

		Sequences []fixtureSequence // nil: the fixture's
	}
}

type fixtureSequence struct{ IDs, Types []int32 }

func readPooledFixture(t *testing.T, name string) *pooledFixture {
	t.Helper()
	f := &pooledFixture{}
	readJSON(t, name, f)
	return f
}

func (f *pooledFixture) folder(t *testing.T, config map[string]any, tensors []fixtureTensor, files map[string]string) fstest.MapFS {
	t.Helper()
	fsys := folder(t, config, tensors)
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// run puts all sequences into one step and returns a row for each.
func pooledRows(t *testing.T, be kernels.Backend, fsys fstest.MapFS, sequences []fixtureSequence) [][]float32 {
	t.Helper()
	m, err := OpenFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	defer be.Close()
	specs := m.KVGroups(blockTokens, kernels.F32)
	for i := range specs {
		specs[i].Blocks = 16
	}
	built, err := m.Build(be, BuildOptions{Format: kernels.FormatF32, KV: specs})
	if err != nil {
		t.Fatal(err)
	}
	exec, err := be.Compile(built.Program, kernels.Limits{Tokens: 128, Seqs: 3, Rows: 1})
	if err != nil {
		t.Fatal(err)
	}
	step, block := &kernels.Step{}, int32(0)
	for _, s := range sequences {
		q := kernels.Seq{First: int32(len(step.Tokens)), Count: int32(len(s.IDs)), Context: int32(len(s.IDs))}
		var table []int32
		at := m.Config().Positions(s.IDs)
		for i := range s.IDs {
			if at == nil {
				step.Positions = append(step.Positions, int32(i))
			}
			if i%blockTokens == 0 {
				table, block = append(table, block), block+1
			}
		}
		for range specs {
			q.Blocks = append(q.Blocks, table)
		}
		step.Positions = append(step.Positions, at...)
		step.Tokens, step.Types, step.Seqs = append(step.Tokens, s.IDs...), append(step.Types, s.Types...), append(step.Seqs, q)
	}
	var out kernels.Result
	if err := exec.Run(step, &out); err != nil {
		t.Fatal(err)
	}
	rows := make([][]float32, len(out.Output))
	for i, row := range out.Output {
		rows[i] = slices.Clone(row)
	}
	return rows
}

// TestGoldenPooled holds every model that embeds or scores to its golden file.
func TestGoldenPooled(t *testing.T) {
	for _, arch := range architectures() {
		for _, name := range slices.Compact([]string{arch.fixture, arch.embeds}) {
			if name != "" && (arch.kind != Generate || name == arch.embeds) {
				t.Run(arch.name+"/"+name, func(t *testing.T) { goldenPooled(t, arch.name, name) })
			}
		}
	}
}

func goldenPooled(t *testing.T, arch, name string) {
	f := readPooledFixture(t, name)
	f.Config["architectures"] = []string{arch}
	compare := func(t *testing.T, got [][]float32, rows string) {
		t.Helper()
		want := decodeRows(t, rows, len(got[0]))
		if len(got) != len(want) {
			t.Fatalf("%d rows; want %d", len(got), len(want))
		}
		d := difference(got, want)
		t.Logf("transformers %s: greatest difference %.2g of the greatest, %.3g", f.Transformers, d, greatest(want))
		if !(d <= tolerance) {
			t.Errorf("rows differ by %.2g of the greatest; want at most %g", d, tolerance)
		}
	}
	compare(t, pooledRows(t, ref.New(), f.folder(t, f.Config, f.Tensors, f.Files), f.Sequences), f.Rows)
	compare(t, pooledRows(t, newCPU(t), f.folder(t, f.Config, f.Tensors, f.Files), f.Sequences), f.Rows)
	for _, v := range f.Variants {
		t.Run(v.Name, func(t *testing.T) {
			config := maps.Clone(f.Config)
			maps.Copy(config, v.Patch)
			tensors := slices.Clone(v.Tensors)
			for _, old := range f.Tensors {
				if !slices.Contains(v.Without, old.name) && !slices.ContainsFunc(tensors, func(n fixtureTensor) bool { return n.name == old.name }) {
					tensors = append(tensors, old)
				}
			}
			files := f.Files
			if v.Files != nil {
				files = v.Files
			}
			sequences := f.Sequences
			if v.Sequences != nil {
				sequences = v.Sequences
			}
			compare(t, pooledRows(t, newCPU(t), f.folder(t, config, tensors, files), sequences), v.Rows)
		})
	}
}

// TestSentenceTransformers: what the files of sentence-transformers say is
// followed, and what of it is not known is refused.
func TestSentenceTransformers(t *testing.T) {
	f := readPooledFixture(t, "qwen3_embed")
	open := func(more map[string]string) (*Model, error) {
		files := maps.Clone(f.Files)
		maps.Copy(files, more)
		return OpenFS(f.folder(t, f.Config, f.Tensors, files))
	}
	m, err := open(map[string]string{
		"config_sentence_transformers.json": `{"prompts":{"query":"Instruct: find\nQuery:","document":""},"default_prompt_name":"query"}`,
		"sentence_bert_config.json":         `{"max_seq_length":100,"do_lower_case":false}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := m.Config()
	if c.Kind != Embed || c.MaxPositions != 100 || c.DefaultPrompt != "query" || !reflect.DeepEqual(c.Prompts, map[string]string{"query": "Instruct: find\nQuery:", "document": ""}) {
		t.Errorf("config %+v", c)
	}

	refused := func(name, text, want string) {
		t.Helper()
		if _, err := open(map[string]string{name: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s: got %v; want %q", name, text, err, want)
		}
	}
	refused("modules.json", `[{"path":"","type":"sentence_transformers.models.Transformer"}]`, "names no Pooling")
	refused("modules.json", `[{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`, "known are Transformer, Pooling and Normalize")
	refused("modules.json", `[{"path":"../../etc","type":"sentence_transformers.models.Pooling"}]`, "leaves the model's folder")
	refused("modules.json", `[{"path":"3","type":"sentence_transformers.models.Pooling"}]`, "cannot read 3/config.json")
	refused("modules.json", `{}`, "modules.json")
	refused("1_Pooling/config.json", `{"pooling_mode_max_tokens":true}`, `pooling by "max" is not supported`)
	refused("1_Pooling/config.json", `{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":true}`, "2 ways of pooling at once")
	refused("1_Pooling/config.json", `{"pooling_mode_mean_tokens":true,"include_prompt":false}`, "include_prompt false is not supported")
	refused("1_Pooling/config.json", `{}`, "0 ways of pooling at once")
	refused("config_sentence_transformers.json", `{"prompts":{},"default_prompt_name":"query"}`, "is none of the prompts")
	refused("sentence_bert_config.json", `{"max_seq_length":-1}`, "max_seq_length is -1")

	g := readFixture(t, "mixtral")
	fsys := folder(t, g.Config, g.Tensors)
	fsys["modules.json"] = &fstest.MapFile{Data: []byte(f.Files["modules.json"])}
	if _, err := OpenFS(fsys); err == nil || !strings.Contains(err.Error(), "MixtralForCausalLM is not supported as an embedding model") {
		t.Errorf("got %v; want: not supported as an embedding model", err)
	}
}
