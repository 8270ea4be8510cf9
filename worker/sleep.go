package worker

import (
	"context"
	"errors"

	"roundhouse/kernels"
)

// Memory is what an engine computes in. The engine's goroutine calls it
// between two steps.
type Memory interface {
	// Release gives weights and pages back.
	Release() error
	// Load brings them in again; the pages hold nothing.
	Load() (kernels.Executable, error)
}

// Pause stops scheduling: what runs and what comes waits. With abort, what is
// under way ends first. Resume goes on.
func (e *Engine) Pause(ctx context.Context, abort bool) {
	if abort {
		e.AbortRequests(ctx, nil)
	}
	e.operate(ctx, func() { e.paused = true })
}

// operate runs what an operator asks for, and has the gauges tell of it before it returns.
func (e *Engine) operate(ctx context.Context, f func()) bool {
	return e.call(ctx, func() {
		f()
		e.stats.gauges(e)
	})
}

// Paused reports whether the engine is suspended, by Pause or by Sleep.
func (e *Engine) Paused(ctx context.Context) bool {
	held := false
	e.call(ctx, func() { held = e.suspended() })
	return held
}

func (e *Engine) suspended() bool { return e.paused || e.asleep > 0 }

// ErrCannotSleep is returned by Sleep of an engine whose memory is not its own.
var ErrCannotSleep = errors.New("this engine cannot give its memory back")

// ErrNoRoom is of WakeUp while others hold the memory that this engine had.
var ErrNoRoom = errors.New("there is no room to wake up in")

// Sleep gives weights and pages back at level 1 and 2, which differ in name
// alone: both are read from the model's files again. What runs is set back to
// its beginning and waits, like what comes; its stream goes on after WakeUp.
func (e *Engine) Sleep(ctx context.Context, level int) (err error) {
	if e.cfg.Memory == nil {
		return ErrCannotSleep
	}
	ran := e.operate(ctx, func() {
		if e.asleep > 0 {
			e.asleep = level
			return
		}
		e.sched.Suspend()
		e.cache.Reset()
		e.doors.evict(e.cache.TakeEvicted())
		e.asleep, e.cfg.Exec = level, nil
		err = e.cfg.Memory.Release()
	})
	if !ran {
		return ErrClosed
	}
	return err
}

// WakeUp ends a sleep and a pause. When the memory cannot be had the engine
// sleeps on.
func (e *Engine) WakeUp(ctx context.Context) (err error) {
	ran := e.operate(ctx, func() {
		if e.asleep > 0 {
			exec, failed := e.cfg.Memory.Load()
			if failed != nil {
				err = failed
				return
			}
			if err = e.reloadAdapters(); err != nil {
				err = errors.Join(err, e.cfg.Memory.Release())
				return
			}
			e.asleep, e.cfg.Exec = 0, exec
			e.time()
		}
		e.resume()
	})
	if !ran {
		return ErrClosed
	}
	return err
}
