package xpu

import (
	"os"
	"path/filepath"
	"testing"

	"roundhouse/kernels/xpu/native"
)

// An ocloc that knows newer GPUs has the kernels checked for them as well, those of 16
// lanes; one that does not has them checked for the three that all know.
func TestNewerTargets(t *testing.T) {
	f := func(help string, want ...string) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ocloc"), []byte("#!/bin/sh\ncat <<'end'\n"+help+"\nend\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		c, err := native.Find(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, target := range Checked(c.Knows) {
			got = append(got, target.Device)
			if i := len(got); i > 3 && target.Tuning != matrixTuning(16) {
				t.Errorf("%s has %v", target.Device, target.Tuning)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("got %v; want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("got %v; want %v", got, want)
			}
		}
	}
	f("<device_type> can be: tgllp, acm-g10, pvc-sdv, pvc, xe-hpg, version or hexadecimal value", "acm-g10", "pvc", "tgllp")
	f("<device_type> can be: acm-g10, pvc, bmg-g21-a0, bmg-g21, lnl-m, xe2-hpg, version", "acm-g10", "pvc", "tgllp", "bmg-g21", "lnl-m")
}
