//go:build pocl || intel

package xpu

import (
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/kerneltest"
)

// A panic while a step is enqueued, or while its answers are read, ends that step with
// an error, and no other.
func TestPanic(t *testing.T) {
	b := open(t, Tuning{})
	for _, launch := range []int{0, 5} {
		kerneltest.Panics(t, b, func(e kernels.Executable) func() {
			l := e.(*executable).launches[launch]
			global := l.global
			l.global = func(counts) []uintptr { panic("spoilt") }
			return func() { l.global = global }
		})
	}
	kerneltest.Panics(t, b, func(e kernels.Executable) func() {
		s := e.(*executable).sampler
		vocab := s.vocab
		s.vocab = -1
		return func() { s.vocab = vocab }
	})
}
