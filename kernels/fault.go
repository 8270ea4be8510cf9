package kernels

import (
	"fmt"
	"runtime/debug"
)

// StepError is why a step was not computed, by a backend that can compute
// others. Any other error of Run is one of the backend itself.
type StepError struct {
	Seq   int // of the step: the sequence that asks for something absent, before anything was computed; -1: all
	Err   error
	Stack []byte // where a panic was; nil: there was none
}

func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// wrong is an error of one sequence.
func wrong(seq int, format string, args ...any) error {
	return &StepError{Seq: seq, Err: fmt.Errorf(format, args...)}
}

// Caught turns a panic into an error of the step that it was in. It is to be
// deferred: defer kernels.Caught(&err).
func Caught(err *error) {
	if p := recover(); p != nil {
		*err = Panicked(p)
	}
}

// Panicked is the error of a step in which a kernel panicked, with the stack of
// the goroutine that calls it.
func Panicked(p any) error {
	return &StepError{Seq: -1, Err: fmt.Errorf("a kernel failed: %v", p), Stack: debug.Stack()}
}
