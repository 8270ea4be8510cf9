package cpu_test

import (
	"fmt"
	"testing"
	"time"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/kernels/kerneltest"
)

func BenchmarkKernels(b *testing.B) {
	for _, level := range cpu.ISAs() {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", level, threads), func(b *testing.B) {
				kerneltest.Bench(b, open(b, cpu.Options{Threads: threads, ISA: level}), cpu.NewReader(threads).Rate(50*time.Millisecond), func(f kernels.Format) float64 {
					peak, err := cpu.Peak(level, f, threads)
					if err != nil {
						b.Fatal(err)
					}
					return peak
				})
			})
		}
	}
}
