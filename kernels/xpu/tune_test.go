package xpu

import (
	"errors"
	"os"
	"strings"
	"testing"

	"roundhouse/kernels/measure"
	"roundhouse/kernels/xpu/cl"
)

var arc = cl.Device{Name: "Arc A770", Driver: "24.1", Kind: cl.GPU, SubGroups: []uint64{8, 16}, Extensions: []string{"cl_intel_subgroup_matrix_multiply_accumulate"}}

// A device on which fewer slices and two tiles are fastest gets them, and has them at the
// next start; another driver gets the table's.
func TestTune(t *testing.T) {
	var seen []string
	best, err := Tune(arc, func(t Tuning, shown measure.Kind) (float64, error) {
		switch shown {
		case measure.OneRow:
			return float64(1 + t.Split), nil
		case measure.ManyRows:
			return 10 - float64(t.Tiles) - float64(t.Columns), nil
		}
		return 5, nil // no difference: the first stays
	}, func(name string, value int, score float64) { seen = append(seen, name) })
	if err != nil {
		t.Fatal(err)
	}
	want := matrixTuning(8)
	want.Split, want.Queries, want.Tiles = 1, 4, 2
	if best != want {
		t.Errorf("found %+v; want %+v", best, want)
	}
	if got := strings.Join(seen, " "); got != "Split Split Split Split Queries Queries Tiles Tiles Columns Columns" {
		t.Errorf("measured %s", got)
	}

	folder := t.TempDir()
	path, err := StoreTuning(folder, arc, best)
	if err != nil {
		t.Fatal(err)
	}
	if got := tuningFor(folder, arc); got != best {
		t.Errorf("the next start has %+v", got)
	}
	newer := arc
	newer.Driver = "25.1"
	if got := tuningFor(folder, newer); got != matrixTuning(8) {
		t.Errorf("another driver has %+v", got)
	}
	for name, text := range map[string]string{
		"damaged": "{", "of another": `{"Device":"x","Driver":"24.1","Tuning":{"Split":2}}`,
		"impossible": `{"Device":"Arc A770","Driver":"24.1","Tuning":{"Split":3,"Queries":1000,"Tiles":64,"Lanes":16}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := tuningFor(folder, arc); got != matrixTuning(8) {
			t.Errorf("%s: %+v; want the table's", name, got)
		}
	}
	broken := errors.New("the device was lost")
	if _, err := Tune(arc, func(Tuning, measure.Kind) (float64, error) { return 0, broken }, nil); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "Split 1: ") {
		t.Errorf("got %v", err)
	}
}
