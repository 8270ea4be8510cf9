//go:build pocl

package xpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/kernels/xpu/cl"
)

// What the driver built is kept, taken at the next start, and built again where the file
// is damaged or the driver is another.
func TestCachedBinaries(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "when", "needed")
	device := open(t, Tuning{}).ctx.Device
	build := func(want string) {
		t.Helper()
		b := open(t, Tuning{})
		b.built.cache = folder
		k, err := b.built.kernel("add_rows")
		if err != nil {
			t.Fatal(err)
		}
		k.Release()
		if got := strings.Join(b.built.from, ", "); got != want {
			t.Errorf("built from %q; want %q", got, want)
		}
	}
	build("rowwise: source")
	build("rowwise: cache")

	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the folder holds %v, %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"cut":     whole[:len(whole)/2],
		"empty":   nil,
		"flipped": append(append([]byte{}, whole[:len(whole)-9]...), whole[len(whole)-9]^1),
		"another": []byte("something else"),
	} {
		if err := os.WriteFile(files[0], damaged, 0o644); err != nil {
			t.Fatal(name, err)
		}
		build("rowwise: source")
		build("rowwise: cache")
	}

	m := Modules(Tuning{})[0]
	other := m
	other.Options += " -cl-fast-relaxed-math"
	places := map[cacheEntry]bool{entryOf(folder, device, m): true, entryOf(folder, device, other): true}
	newer := device
	newer.Driver += ".1"
	places[entryOf(folder, newer, m)] = true
	places[entryOf(folder, cl.Device{Name: "other"}, m)] = true
	if len(places) != 4 {
		t.Error("another driver, device or set of options has the same place")
	}
}

// A driver that does not build a kernel says so in a sentence, with the compiler's words.
func TestBuildFails(t *testing.T) {
	b := open(t, Tuning{})
	for i := range b.built.modules {
		if b.built.modules[i].Name == "rowwise" {
			b.built.modules[i].Text = "__kernel void add_rows() { undeclared = 1; }"
		}
	}
	_, err := b.built.kernel("add_rows")
	if err == nil || !strings.Contains(err.Error(), "kernels rowwise: ") || !strings.Contains(err.Error(), "does not build the kernels") || !strings.Contains(err.Error(), "undeclared") {
		t.Errorf("got %v", err)
	}
}
