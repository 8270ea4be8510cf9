package cpu

import "roundhouse/kernels"

// ShareAll has threads share even steps that are too small for it.
func (b *Backend) ShareAll() { b.shareAll = true }

// Spoil has a stage panic in one thread, the last stage where it is -1.
func Spoil(e kernels.Executable, stage, thread int) (undo func()) {
	x := e.(*executable)
	s := &x.stages[(stage+len(x.stages))%len(x.stages)]
	run := s.run
	s.run = func(i int) {
		if i == thread {
			panic("spoilt")
		}
		run(i)
	}
	return func() { s.run = run }
}
