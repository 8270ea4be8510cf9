package bench

import (
	"path/filepath"
	"slices"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/worker/model"
)

// Both files of a shape are the same model: read from either, a prompt gives the
// same logits to the bit.
func TestSameModel(t *testing.T) {
	for _, family := range []string{"qwen3", "qwen2", "llama"} {
		t.Run(family, func(t *testing.T) {
			s := Shape{Name: family, Family: family, Hidden: 256, Inner: 384, Layers: 2, Heads: 4, KVHeads: 2, Dim: 64, Vocab: 512, Theta: 1e5}
			dir := t.TempDir()
			file := filepath.Join(dir, "model.gguf")
			if err := s.WriteSafetensors(filepath.Join(dir, "hf")); err != nil {
				t.Fatal(err)
			}
			if err := s.WriteGGUF(file, false); err != nil {
				t.Fatal(err)
			}
			folder, err := model.Open(filepath.Join(dir, "hf"))
			want := prompt(t, folder, err)
			whole, err := model.OpenGGUF(file)
			for i, row := range prompt(t, whole, err) {
				if !slices.Equal(row, want[i]) {
					t.Fatalf("the logits of position %d differ", i)
				}
			}
		})
	}
}

// prompt is the logits of every position of a prompt.
func prompt(t *testing.T, m *model.Model, err error) (rows [][]float32) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := NewRunner(b, m, kernels.FormatBF16, kernels.BF16, 32)
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Run([]int32{300, 7, 7, 401, 0, 511, 256, 9}, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range result.Logits {
		rows = append(rows, slices.Clone(row))
	}
	return rows
}
