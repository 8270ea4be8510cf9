package cpu_test

import (
	"testing"

	"go.uber.org/goleak"

	"roundhouse/kernels/cpu"
	"roundhouse/kernels/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// instruction sets is the instruction sets to test.
func levels() []string {
	all := cpu.ISAs()
	if race {
		return all[:1]
	}
	return all
}

// open starts a backend that ends with the test.
func open(t testing.TB, o cpu.Options) *cpu.Backend {
	t.Helper()
	b, err := cpu.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestLevels(t *testing.T) {
	for i, level := range levels() {
		t.Run(level, func(t *testing.T) {
			b := open(t, cpu.Options{Threads: 2 + i%2, ISA: level})
			b.ShareAll()
			kerneltest.Run(t, b)
		})
	}
}

// Every instruction set, every number of threads and every split by memory nodes gives the bits of the portable instruction set.
func TestSameBits(t *testing.T) {
	plain := open(t, cpu.Options{Threads: 1, ISA: levels()[len(levels())-1]})
	for i, level := range levels() {
		o := cpu.Options{Threads: 1 + (i+1)%3, ISA: level, CPUs: []int{0, 1}}
		if i == 0 { // as if they were of two memory nodes
			o.Nodes = []int{0, 1}
		}
		kerneltest.Equal(t, open(t, o), plain)
	}
}

func TestOptions(t *testing.T) {
	f := func(o cpu.Options, ok bool) {
		t.Helper()
		b, err := cpu.New(o)
		if (err == nil) != ok {
			t.Fatalf("%+v: error %v", o, err)
		}
		if err == nil {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f(cpu.Options{}, true)
	f(cpu.Options{CPUs: []int{0, 1, 0}}, true)
	f(cpu.Options{ISA: "mmx"}, false)
	f(cpu.Options{Threads: -1}, false)
}
