package cpu_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
)

// cacheFormats are those of the matrices in the tests' files.
var cacheFormats = []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatInt8, kernels.FormatInt4, kernels.FormatFP8}

// runCached opens a backend with a cache file, computes a linear of every format
// and returns the results. cached reports whether the weights must come from the
// file, which is then shown no source.
func runCached(t *testing.T, path, key string, cached bool) (rows [][]float32) {
	t.Helper()
	const out, in = 200, 256
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 0, out*in*4)
	for range out * in {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(rng.NormFloat64())))
	}
	b := open(t, cpu.Options{Threads: 1, Cache: cpu.Cache{Path: path, Key: key}})
	if b.Cached() != cached {
		t.Fatalf("key %q: the weights come from the file: %v; want %v", key, !cached, cached)
	}
	p := &kernels.Program{}
	x := p.New(kernels.Tokens, in)
	add := func(name string, out, in int, format kernels.Format) kernels.Weight {
		src := kernels.Source{Name: name, Out: out, In: in, Type: kernels.F32, Data: data[:4*out*in]}
		if cached {
			src.Data = nil
		}
		w, err := b.Weight(src, format)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	p.Do(&kernels.Embed{Out: x, Table: add("table", 10, in, kernels.FormatBF16)})
	for _, format := range cacheFormats {
		y := p.New(kernels.Tokens, out)
		p.Do(&kernels.Linear{In: x, Out: y, Add: kernels.None, Weights: []kernels.Weight{add(format.String(), out, in, format)},
			Biases: []kernels.Weight{add("bias", out, 1, kernels.FormatVector)}})
		p.Do(&kernels.Output{In: y})
	}
	finished := make(chan error, 1)
	b.Loaded(func(err error) { finished <- err })
	if !cached {
		if err := <-finished; err != nil {
			t.Fatal(err)
		}
	}
	e, err := b.Compile(p, kernels.Limits{Tokens: 1, Seqs: 1})
	if err != nil {
		t.Fatal(err)
	}
	var r kernels.Result
	if err := e.Run(&kernels.Step{Tokens: []int32{3}, Positions: []int32{0}, Seqs: []kernels.Seq{{Count: 1, Context: 1}}}, &r); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Output {
		rows = append(rows, slices.Clone(row))
	}
	return rows
}

// A second start takes the weights from the file, without looking at the
// source, and computes the same bits; a file of another key, or a damaged one,
// is made again.
func TestCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache", "weights")
	want := runCached(t, path, "a", false)
	same := func(key string, cached bool) {
		t.Helper()
		for i, got := range runCached(t, path, key, cached) {
			if !slices.Equal(got, want[i]) {
				t.Fatalf("%v: another result from the cache file", cacheFormats[i])
			}
		}
	}
	same("a", true)
	same("b", false)
	same("b", true)

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)-100] },
		func(b []byte) []byte { return b[:3] },
		func(b []byte) []byte { b[len(b)-200] ^= 1; return b },
		func(b []byte) []byte { b[len(b)-25] ^= 1; return b },
		func(b []byte) []byte { b[1000] ^= 1; return b },
		func(b []byte) []byte { return bytes.Repeat([]byte("another file"), 1000) },
	} {
		if err := os.WriteFile(path, damage(slices.Clone(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
		same("b", false)
		same("b", true)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

// A start that ends before all weights are there leaves no file, and a start
// removes what one that was killed has left, but not what another is making.
func TestCacheUnfinished(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weights")
	left := func(want ...string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the folder has %q; want %q", got, want)
		}
	}
	start := func(loaded bool) {
		t.Helper()
		b, err := cpu.New(cpu.Options{Threads: 1, Cache: cpu.Cache{Path: path, Key: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Weight(kernels.Source{Name: "w", Out: 2, In: 2, Type: kernels.F32, Data: make([]byte, 16)}, kernels.FormatF32); err != nil {
			t.Fatal(err)
		}
		if loaded {
			finished := make(chan error, 1)
			b.Loaded(func(err error) { finished <- err })
			if err := <-finished; err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	start(false)
	left()
	making, err := os.Create(path + ".1.tmp")
	if err != nil {
		t.Fatal(err)
	}
	defer making.Close()
	if err := unix.Flock(int(making.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".2.tmp", []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	start(true)
	left("weights", "weights.1.tmp")
}
