package cpu

import (
	"sync"
	"time"
	"unsafe"

	"roundhouse/kernels"
)

// ShareAll has threads share even steps that are too small for it.
func (b *Backend) ShareAll() { b.shareAll = true }

// Peak is the operations a second of a format's largest kernel over data that
// stay in the first cache, of so many threads: no linear can be faster.
func Peak(name string, format kernels.Format, threads int) float64 {
	l, err := findLevel(name)
	if err != nil {
		panic(err)
	}
	rates := make([]float64, threads)
	var wait sync.WaitGroup
	for i := range threads {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 3 {
				rates[i] = max(rates[i], peak(l, kindOf[format]))
			}
		}()
	}
	wait.Wait()
	var sum float64
	for _, r := range rates {
		sum += r
	}
	return sum
}

func peak(l *level, kind int) float64 {
	const columns, rounds = 256, 2000
	m := l.matrix[kind][0]
	blocks := columns / blockColumns(kind)
	w, a, out := make([]byte, 1<<16), make([]byte, 1<<13), make([]float32, 1<<10)
	t := &tile{w: unsafe.Pointer(&w[0]), wStride: uintptr(blocks * blockBytes[kind]), a: unsafe.Pointer(&a[0]), aStride: 1024, blocks: uintptr(blocks),
		out: unsafe.Pointer(&out[0]), outStride: 256, aux: unsafe.Pointer(&a[512]), auxStride: 1024, sums: unsafe.Pointer(&a[600]),
		scales: unsafe.Pointer(&w[1<<15]), zeros: unsafe.Pointer(&w[1<<15])}
	start := time.Now()
	for range rounds {
		m.run(t)
	}
	return 2 * columns * 16 * float64(m.rows*m.tiles) * rounds / time.Since(start).Seconds()
}
