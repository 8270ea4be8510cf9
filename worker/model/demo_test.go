package model

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"roundhouse/worker/demo"
)

// TestDemo holds the demonstration model to what transformers computes from
// the same files.
func TestDemo(t *testing.T) {
	var golden struct {
		Weights  string  `json:"weights_sha256"`
		ProbeIDs []int32 `json:"probe_ids"`
		Prompts  []struct {
			Name   string      `json:"name"`
			IDs    []int32     `json:"ids"`
			TopIDs [][]int32   `json:"top_ids"`
			Top    [][]float32 `json:"top_logits"`
			Probe  [][]float32 `json:"probe_logits"`
			MaxAbs []float32   `json:"max_abs"`
		} `json:"prompts"`
	}
	readGolden(t, &golden)
	weights, err := fs.ReadFile(demo.FS, "model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(weights)); sum != golden.Weights {
		t.Fatalf("golden.json.gz is of weights with SHA-256 %s, the model's have %s; run golden.py of worker/demo/train", golden.Weights, sum)
	}
	m, err := OpenFS(demo.FS)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, p := range golden.Prompts {
		got := newRunner(t, newCPU(t), m, len(p.IDs)).logits(t, p.IDs, len(p.IDs))
		worst := 0.0
		for i, row := range got {
			for j, id := range p.TopIDs[i] {
				worst = max(worst, abs(row[id]-p.Top[i][j])/float64(p.MaxAbs[i]))
			}
			for j, id := range golden.ProbeIDs {
				worst = max(worst, abs(row[id]-p.Probe[i][j])/float64(p.MaxAbs[i]))
			}
		}
		t.Logf("%s: %d positions, greatest difference %.2g of the greatest logit", p.Name, len(p.IDs), worst)
		if !(worst <= tolerance) {
			t.Errorf("%s: logits differ by %.2g of the greatest; want at most %g", p.Name, worst, tolerance)
		}
	}
}

func readGolden(t *testing.T, into any) {
	t.Helper()
	f, err := os.Open("../demo/testdata/golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(into); err != nil {
		t.Fatal(err)
	}
}
