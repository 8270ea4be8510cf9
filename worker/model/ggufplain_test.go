package model

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"roundhouse/worker/gguf"
)

// folderConfig is the configuration of an architecture's golden file, and its tensors.
func folderConfig(t testing.TB, fixtureName string) (config map[string]any, tensors []fixtureTensor) {
	t.Helper()
	f := &fixture{}
	readJSON(t, fixtureName, f)
	config = maps.Clone(f.Config)
	if fixtureName == "llama" {
		config["rope_scaling"] = nil // a tensor of its own in GGUF
	}
	config["use_sliding_window"] = false // no key says it
	if fixtureName == "gemma3" {
		config["query_pre_attn_scalar"] = config["head_dim"] // nor this
	}
	return config, f.Tensors
}

// plainGGUF is the model of a row's golden file as a GGUF file of floats.
func plainGGUF(t testing.TB, row architecture) (values map[string]gguf.Value, contents []gguf.Content) {
	t.Helper()
	config, tensors := folderConfig(t, row.fixture)
	form := row.gguf
	values = map[string]gguf.Value{"general.architecture": form.arch, "general.file_type": uint32(0)}
	for _, f := range slices.Concat(ggufFields, form.fields) {
		switch v, ok := config[f.field].(float64); {
		case ok && f.real:
			values[form.arch+"."+f.key] = float32(v)
		case ok:
			values[form.arch+"."+f.key] = uint32(v)
		}
	}
	if scaling, ok := config["rope_scaling"].(map[string]any); ok {
		values[form.arch+".rope.scaling.type"] = scaling["rope_type"].(string)
		values[form.arch+".rope.scaling.factor"] = float32(scaling["factor"].(float64))
	}
	at := map[string]int{}
	for _, x := range tensors {
		c := gguf.Content{Name: x.name, Type: gguf.F32, Shape: x.shape, Data: x.fill()}
		if expert := expertNumber.FindString(x.name); expert != "" {
			c.Name = strings.TrimSuffix(strings.Replace(x.name, expert, ".experts.", 1), ".weight")
		}
		c.Name = form.name(c.Name)
		switch heads := config["num_attention_heads"].(float64); {
		case form.paired && strings.Contains(x.name, "q_proj"):
			c.Data = pairRows(c.Data, x.shape[0], int(heads))
		case form.paired && strings.Contains(x.name, "k_proj"):
			c.Data = pairRows(c.Data, x.shape[0], int(config["num_key_value_heads"].(float64)))
		}
		if i, ok := at[c.Name]; ok { // the next expert
			contents[i].Data = append(contents[i].Data, c.Data...)
			contents[i].Shape[0]++
			continue
		}
		if c.Name != form.name(x.name) {
			c.Shape = append([]int{1}, x.shape...)
		}
		if form == ggufGemma3 && strings.Contains(c.Name, "norm.weight") { // 1 added, as converters do
			numbers := floatsOf(c.Data)
			for i := range numbers {
				numbers[i]++
			}
			c.Data = bytesOf(numbers)
		}
		at[c.Name] = len(contents)
		contents = append(contents, c)
	}
	return values, contents
}

var expertNumber = regexp.MustCompile(`\.experts\.\d+\.`)

// rowOf is the row of an architecture.
func rowOf(t testing.TB, name string) architecture {
	t.Helper()
	row, err := findArchitecture([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// pairRows is what a converter does to queries and keys: of each head, row i of
// the upper half is followed by row i of the lower one.
func pairRows(data []byte, rows, heads int) []byte {
	var out []byte
	size, dim := len(data)/rows, rows/heads
	for h := range heads {
		for i := range dim / 2 {
			for _, r := range []int{h*dim + i, h*dim + dim/2 + i} {
				out = append(out, data[r*size:(r+1)*size]...)
			}
		}
	}
	return out
}

// TestGGUFIsFolder: a GGUF file of floats gives the same logits as the folder
// that it was made of, to the last bit (Gemma's norms are rounded once more); and
// others where rows stand elsewhere.
func TestGGUFIsFolder(t *testing.T) {
	ids := []int32{5, 1, 60, 33, 2, 71, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 3, 3, 3}
	of := func(m *Model) [][]float32 { return newRunner(t, newCPU(t), m, len(ids)).logits(t, ids, len(ids)) }
	for _, row := range architectures() {
		if row.gguf == nil {
			continue
		}
		config, tensors := folderConfig(t, row.fixture)
		want := of(openFixture(t, config, tensors))
		values, contents := plainGGUF(t, row)
		most := 0.0
		if row.gguf == ggufGemma3 {
			most = tolerance
		}
		if d := difference(of(openGGUFFixture(t, values, contents)), want); d > most {
			t.Errorf("%s: logits differ by %.2g of the greatest from those of the folder", row.name, d)
		}
		for i := range contents {
			if strings.Contains(contents[i].Name, "attn_k.") {
				contents[i].Data = slices.Concat(contents[i].Data[len(contents[i].Data)/2:], contents[i].Data[:len(contents[i].Data)/2])
			}
		}
		if d := difference(of(openGGUFFixture(t, values, contents)), want); d < 100*tolerance {
			t.Errorf("%s: logits of reordered rows differ by %.2g only", row.name, d)
		}
	}
}
