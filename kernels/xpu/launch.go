package xpu

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

var errUnsupported = errors.ErrUnsupported

// launch is one kernel with its arguments, run once a step.
type launch struct {
	kernel *cl.Kernel
	global func(c counts) []uintptr
	local  []uintptr
	rowArg int // argument that is the number of rows; -1: none
	rows   func(c counts) int
	op     string  // of the program, for people
	parted *parted // an attention's two kernels, of which this is the first; nil: one kernel alone
}

// counts is how many rows of each kind a step has.
type counts struct {
	tokens, sampled, seqs int
	made                  []int // of features, and of what windows make of rows
}

func (c counts) of(kind kernels.Rows) int {
	switch kind {
	case kernels.Sampled:
		return c.sampled
	case kernels.Seqs:
		return c.seqs
	case kernels.Tokens:
		return c.tokens
	}
	return c.made[kind-kernels.Frames]
}

// arg is an argument of a kernel: *cl.Buffer, int32, int64, float32, int, bool,
// localFloats, rowCount, pages or firstBlock.
type arg any

// localFloats is an argument that is memory of a group: how many floats.
type localFloats int

// rowCount marks the argument that is the number of rows.
type rowCount struct{}

// launch appends a kernel to the step.
func (e *executable) launch(name string, local []uintptr, global func(c counts) []uintptr, args ...arg) {
	if e.err != nil {
		return
	}
	k, err := e.b.built.kernel(name)
	if err != nil {
		e.err = err
		return
	}
	if e.b.tuning.count && hasCounter(name) {
		args = append(args, e.b.counter)
	}
	l := &launch{kernel: k, global: global, local: local, rowArg: -1, op: e.doing}
	e.launches = append(e.launches, l)
	for i, a := range args {
		if err := l.set(i, a, e.b.dummy); err != nil {
			e.err = fmt.Errorf("%s, argument %d: %w", name, i, err)
			return
		}
		if c := kvOf(a); c != nil {
			c.uses = append(c.uses, kvUse{l, i, a})
		}
	}
}

// hasCounter reports whether a kernel counts what it moves: all do that a step which decodes
// may need.
func hasCounter(name string) bool {
	return !slices.Contains([]string{"features", "gather_rows", "convolve"}, name)
}

// set gives a kernel one argument. A kernel that does not use a buffer gets the
// dummy: some drivers take no null pointer.
func (l *launch) set(i int, a arg, dummy *cl.Buffer) error {
	switch v := a.(type) {
	case *cl.Buffer:
		if v == nil {
			v = dummy
		}
		return l.kernel.SetBuffer(i, v)
	case int32:
		return l.kernel.SetInt(i, v)
	case int:
		if v > math.MaxInt32 {
			return fmt.Errorf("%d is beyond 31 bits", v)
		}
		return l.kernel.SetInt(i, int32(v))
	case bool:
		if v {
			return l.kernel.SetInt(i, 1)
		}
		return l.kernel.SetInt(i, 0)
	case int64:
		return l.kernel.SetLong(i, v)
	case float32:
		return l.kernel.SetFloat(i, v)
	case localFloats:
		return l.kernel.SetLocal(i, 4*int(v))
	case rowCount:
		l.rowArg = i
		return l.kernel.SetInt(i, 0)
	case pages:
		return l.set(i, *v.buffer, dummy)
	case firstBlock:
		return l.kernel.SetLong(i, int64(v.layer)*int64(v.c.spec.Blocks))
	}
	panic(fmt.Sprintf("BUG: argument of type %T", a))
}

// run enqueues the launch for a step; nothing where it has no rows.
func (l *launch) run(c counts) error {
	if l.parted != nil {
		return l.parted.run()
	}
	global := l.global(c)
	for _, g := range global {
		if g == 0 {
			return nil
		}
	}
	if l.rowArg >= 0 {
		if err := l.kernel.SetInt(l.rowArg, int32(l.rows(c))); err != nil {
			return err
		}
	}
	return l.kernel.Run(global, l.local)
}

// dims is a global size.
func dims(n ...int) []uintptr {
	out := make([]uintptr, len(n))
	for i, v := range n {
		out[i] = uintptr(v)
	}
	return out
}

// none is a buffer argument that a kernel does not use.
var none *cl.Buffer
