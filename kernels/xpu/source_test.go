package xpu

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Every kernel belongs to one module, and the SPIR-V of an older text is not taken.
func TestModules(t *testing.T) {
	for _, tuning := range []Tuning{{Split: 2, Rows: 4, Queries: 8}, plainTuning, matrixTuning(8), matrixTuning(16)} {
		var all []string
		for _, m := range Modules(tuning) {
			all = append(all, m.Kernels...)
			newer := m
			newer.Text += " "
			if m.Key() == newer.Key() || newer.IL() != nil {
				t.Errorf("%s: another text has the same key", m.Name)
			}
		}
		slices.Sort(all)
		if n := len(all); n < 30 || len(slices.Compact(all)) != n {
			t.Errorf("%d kernels: %s", n, strings.Join(all, " "))
		}
	}
	if _, err := os.Stat("kernels/spirv"); err == nil { // after `make kernels`
		for _, target := range GPUs() {
			m := Modules(target.Tuning)[0]
			if m.IL() == nil {
				t.Logf("%s for %s is older than its source; `make kernels` builds it", m.Name, target.Device)
			}
		}
	}
}
