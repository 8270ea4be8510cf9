package cpu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"roundhouse/kernels"
)

// executable is a compiled program. Its memory is one stretch, laid out once;
// Run allocates nothing.
type executable struct {
	b       *Backend
	isa     *isa
	p       *kernels.Program
	limits  kernels.Limits
	threads int
	active  int       // threads of this step: all, or the caller's alone
	costs   []float64 // float32 operations a row of each kind
	stages  []stage
	buffers []buffer
	places  []int
	size    int
	values  [][]float32 // by Tensor: (limit of rows, width)
	placed  []func()    // run once, when memory is there
	results []func()    // what Run brings back, on the caller's thread

	fault   atomic.Pointer[error] // a panic in a stage of this step
	step    *kernels.Step
	out     *kernels.Result
	grids   *kernels.Grids
	counts  []int // rows of each kind in this step
	blocks  []rowBlock
	slots   int     // that adapters have
	pieces  []piece // of rows that go through one
	job     func(thread int)
	scratch []scratch
	tiles   stock
	spreads []*attention // whose splits may be shared out
	queues  []*queue     // of stages whose work is shared out as it is done
	brought
	timing
}

// brought is what a step brings back, its memory used again.
type brought struct {
	choices []kernels.Choice
	logits  [][]float32
	outputs [][]float32
}

// timing is where the latest step's time went, if that is recorded.
type timing struct {
	timed bool
	spans [][]kernels.Span // by thread
	told  []kernels.Span   // the same, one after the other
}

// errClosed is returned by Run after the backend was closed.
var errClosed = errors.New("the backend is closed")

// limit is the greatest number of rows of a kind.
func (x *executable) limit(kind kernels.Rows) int {
	switch kind {
	case kernels.Sampled:
		return x.limits.Rows
	case kernels.Seqs:
		return x.limits.Seqs
	}
	if x.p.Base(kind) == kernels.Frames {
		return x.limits.Frames
	}
	return x.limits.Tokens
}

// setAside takes the memory of a plan.
func (x *executable) setAside(pl *plan) error {
	memory, err := x.b.stepMemory(x.size, x.limits.Shared)
	if err != nil {
		return fmt.Errorf("buffers of a step of %d tokens: %w", x.limits.Tokens, err)
	}
	x.stages, x.buffers = pl.stages, pl.buffers
	for i := range x.buffers {
		if b := &x.buffers[i]; b.first >= 0 && !b.fixed {
			b.memory = memory[x.places[i]:][:b.bytes:b.bytes]
		}
	}
	x.values = make([][]float32, len(x.p.Values))
	for i := range x.values {
		x.values[i] = floats(x.buffers[i].memory)
	}
	x.scratch = make([]scratch, x.threads)
	for i := range x.scratch {
		if err := x.scratch[i].setAside(x); err != nil {
			return err
		}
	}
	for _, f := range x.placed {
		f()
	}
	x.blocks = make([]rowBlock, 0, x.limits.Seqs+x.limits.Tokens/blockRows+1)
	if x.slots = x.p.AdapterSlots(); x.slots > 0 {
		x.pieces = make([]piece, 0, x.limits.Seqs+x.limits.Tokens/pieceRows+1)
	}
	x.tiles.setAside(x.threads)
	x.job = x.work
	return nil
}

// stepMemory is room for a step's buffers. Who shares it gets what others have
// where that is enough, so that the greatest is to be compiled first.
func (b *Backend) stepMemory(size int, shared bool) ([]byte, error) {
	if shared && size <= len(b.shared) {
		return b.shared, nil
	}
	memory, err := b.plans.bytes(size)
	if shared && err == nil {
		b.shared = memory
	}
	return memory, err
}

// floats sees memory as float32.
func floats(b []byte) []float32 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}

// Run implements kernels.Executable.
func (x *executable) Run(step *kernels.Step, out *kernels.Result) (err error) {
	if x.b.closed {
		return errClosed
	}
	if err := x.limits.CheckStep(x.p, step); err != nil {
		return err
	}
	if err := x.grids.Fill(step, x.limits); err != nil {
		return err
	}
	defer kernels.Caught(&err)
	x.fault.Store(nil)
	x.step, x.out = step, out
	x.counts = append(x.counts[:0], len(step.Tokens), len(step.Rows), len(step.Seqs)) // by kernels.Rows
	for kind := kernels.Frames; int(kind) < len(x.costs); kind++ {
		x.counts = append(x.counts, x.grids.Count(kind))
	}
	x.cutRows()
	x.cutAdapters()
	for _, q := range x.queues {
		q.next.Store(0)
	}
	x.choices, x.logits, x.outputs = x.choices[:0], x.logits[:0], x.outputs[:0]
	for i := range x.spans {
		x.spans[i] = x.spans[i][:0]
	}
	x.active = x.threads
	if x.small() {
		x.active = 1
	}
	for _, a := range x.spreads {
		a.decide()
	}
	if x.active == 1 {
		x.work(0)
	} else {
		x.b.team.run(x.job)
	}
	if fault := x.fault.Load(); fault != nil {
		return *fault
	}
	for _, f := range x.results {
		f()
	}
	out.Sampled, out.Logits, out.Output = x.choices, x.logits, x.outputs
	x.step, x.out = nil, nil
	return nil
}

// small reports whether a step is so little work that to share it out gains
// nothing: about a tenth of a millisecond. The threads' meetings take a good
// part of that, and much more where other processes want the processors too.
func (x *executable) small() bool {
	var cost float64
	for kind, n := range x.counts {
		cost += float64(n) * x.costs[kind]
	}
	return cost < x.isa.small && !x.b.shareAll
}

// work is one thread's part of a step.
func (x *executable) work(thread int) {
	x.tiles.refill(thread, x.active)
	met := false // before this stage
	for i := 0; i < len(x.stages); {
		s := &x.stages[i]
		if s.without != nil && s.without() {
			i++
			continue
		}
		if s.barrier && !met && x.active > 1 {
			end := x.single(i)
			if x.b.team.last() {
				for ; i < end; i++ {
					x.stage(&x.stages[i], 0)
				}
				x.b.team.release()
			}
			i, met = end, true
			continue
		}
		x.stage(s, thread)
		met = false
		i++
	}
}

// stage is one thread's part of a stage. After a panic in one no other is run:
// the threads only meet where they would have met.
func (x *executable) stage(s *stage, thread int) {
	if x.fault.Load() != nil {
		return
	}
	defer x.caught()
	if !x.timed {
		s.run(thread)
		return
	}
	began := time.Now()
	s.run(thread)
	x.spans[thread] = append(x.spans[thread], kernels.Span{Op: s.op, Thread: thread, Began: began, Ended: time.Now()})
}

// Time implements kernels.Timed.
func (x *executable) Time(on bool) {
	if x.timed = on; on && x.spans == nil {
		x.spans = make([][]kernels.Span, x.threads)
	}
}

// Spans implements kernels.Timed.
func (x *executable) Spans() []kernels.Span {
	x.told = x.told[:0]
	for _, list := range x.spans {
		x.told = append(x.told, list...)
	}
	return x.told
}

// caught notes a panic, the first one of a step. It is to be deferred.
func (x *executable) caught() {
	if p := recover(); p != nil {
		err := kernels.Panicked(p)
		x.fault.CompareAndSwap(nil, &err)
	}
}

// single is the end of the stages from i on that have one row at most. Threads
// would meet once more to share it: the last one to come does these stages for
// all, as thread 0, which stands still meanwhile.
func (x *executable) single(i int) int {
	for i < len(x.stages) && x.stages[i].rowwise && x.counts[x.stages[i].rows] <= 1 {
		i++
	}
	return i
}

// share is the rows of a thread. Thread 0 has the first.
func (x *executable) share(kind kernels.Rows, thread int) (first, last int) {
	from := func(thread int) int { return (x.counts[kind]*thread + x.active - 1) / x.active }
	return from(thread), from(thread + 1)
}

// row is row i of t.
func (x *executable) row(t kernels.Tensor, i int) []float32 {
	w := x.p.Values[t].Width
	return x.values[t][i*w : (i+1)*w : (i+1)*w]
}

// ids is the index that a step has for an Embed; nil is all zeros.
func (x *executable) ids(kind kernels.IDs, step *kernels.Step) []int32 {
	switch kind {
	case kernels.PositionIDs:
		return step.Positions
	case kernels.TypeIDs:
		return step.Types
	}
	return step.Tokens
}

// one is x, where 0 means 1.
func one(x float32) float32 {
	if x == 0 {
		return 1
	}
	return x
}
