package cpu

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"roundhouse/kernels"
)

// Peak is the operations a second of a format's largest kernel over data that
// stay in the first cache, of so many threads at once: no linear can be faster.
func Peak(name string, format kernels.Format, threads int) (float64, error) {
	l, err := findISA(name)
	if err != nil {
		return 0, err
	}
	kind := kindOf[format]
	if kind == kindFP8 && l.pairsFP8 != nil {
		kind = kindBF16 // whose kernels take many rows
	}
	return together(threads, func() float64 { return peak(l, kind) }), nil
}

// Reader is a bare loop: threads that do nothing but read slices of memory far
// beyond the caches.
type Reader [][]uint64

// NewReader makes a slice for each thread.
func NewReader(threads int) Reader {
	r := make(Reader, threads)
	for i := range r {
		r[i] = make([]uint64, 16<<20)
		for k := range r[i] {
			r[i][k] = uint64(k)
		}
	}
	return r
}

// Rate is the bytes a second that the threads read, on average over the time
// given. What it is compared with should take as long: a machine's memory has
// good and bad moments.
func (r Reader) Rate(least time.Duration) float64 {
	rates := make(chan float64, len(r))
	for _, words := range r {
		go func() {
			read, start := 0, time.Now()
			for read == 0 || time.Since(start) < least {
				kept.Add(sumWords(words))
				read += 8 * len(words)
			}
			rates <- float64(read) / time.Since(start).Seconds()
		}()
	}
	sum := 0.0
	for range r {
		sum += <-rates
	}
	return sum
}

// together adds up what threads reach at the same time, each the best of three
// rounds.
func together(threads int, rate func() float64) (sum float64) {
	rates := make([]float64, threads)
	var wait sync.WaitGroup
	for i := range threads {
		wait.Go(func() {
			for range 3 {
				rates[i] = max(rates[i], rate())
			}
		})
	}
	wait.Wait()
	for _, r := range rates {
		sum += r
	}
	return sum
}

func peak(l *isa, kind int) float64 {
	const columns, rounds = 256, 2000
	m := l.matrix[kind][0]
	blocks := columns / blockColumns(kind)
	w, a, out := make([]byte, 1<<16), make([]byte, 1024*max(m.rows, 8)), make([]float32, 64*max(m.rows, 16))
	var s scratch
	s.alignPart()
	t := &tile{part: s.tile.part, w: unsafe.Pointer(&w[0]), wStride: uintptr(blocks * blockBytes[kind]), a: unsafe.Pointer(&a[0]), aStride: 1024, blocks: uintptr(blocks),
		out: unsafe.Pointer(&out[0]), outStride: 256, aux: unsafe.Pointer(&a[512]), auxStride: 1024, sums: unsafe.Pointer(&a[600]),
		scales: unsafe.Pointer(&w[1<<15]), zeros: unsafe.Pointer(&w[1<<15])}
	start := time.Now()
	for range rounds {
		m.run(t)
	}
	return 2 * columns * 16 * float64(m.rows*m.tiles) * rounds / time.Since(start).Seconds()
}

// sumWords touches every half of a cache line.
func sumWords(w []uint64) uint64 {
	var a, b, c, d uint64
	for ; len(w) >= 32; w = w[32:] {
		a += w[0] + w[4]
		b += w[8] + w[12]
		c += w[16] + w[20]
		d += w[24] + w[28]
	}
	return a + b + c + d
}

// kept holds what a bare loop has computed, so that it is not left out.
var kept atomic.Uint64
