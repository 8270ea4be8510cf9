package cpu_test

import (
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/kernels/kerneltest"
)

// Whatever a sampling and its logits are, a choice is made of what may be chosen,
// or the sequence alone gets an error.
func FuzzSampling(f *testing.F) {
	for i, e := range kerneltest.EdgeCases() {
		if i%97 == 0 {
			f.Add(e.Seed, e.Temperature, e.TopP, e.MinP, e.Penalty, e.Add, e.TopK, e.Odd, e.Kinds)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, temperature, topP, minP, penalty, add uint32, topK int32, odd uint32, kinds uint8) {
		for _, level := range levels() {
			kerneltest.CheckEdges(t, open(t, cpu.Options{Threads: 1, ISA: level}), kerneltest.Edges{
				Seed: seed, Temperature: temperature, TopP: topP, MinP: minP, Penalty: penalty, Add: add, TopK: topK, Odd: odd, Kinds: kinds})
		}
	})
}

// A panic in any thread ends its step with an error, and no other.
func TestPanic(t *testing.T) {
	for _, threads := range []int{1, 3} {
		b := open(t, cpu.Options{Threads: threads})
		b.ShareAll()
		for thread := range threads {
			for _, stage := range []int{0, 5, -1} {
				kerneltest.Panics(t, b, func(e kernels.Executable) func() { return cpu.Spoil(e, stage, thread) })
			}
		}
	}
}
