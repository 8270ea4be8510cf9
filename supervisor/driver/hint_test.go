package driver

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever changes something never waits for who looks at it; who looks after the last
// change has seen it, however many there were; and nobody looks for nothing.
func TestHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var state, seen, looks atomic.Int64
		h := NewHint()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				select {
				case <-h:
					seen.Store(state.Load())
					looks.Add(1)
					Wait(ctx, time.Second)
				case <-ctx.Done():
				}
			}
		}()
		change := func(times int) {
			for range times {
				state.Add(1)
				h.Give()
			}
			synctest.Wait()
		}
		expect := func(wantSeen, wantLooks int64) {
			t.Helper()
			if seen.Load() != wantSeen || looks.Load() != wantLooks {
				t.Errorf("at change %d: %d was seen, in %d looks; want %d in %d", state.Load(), seen.Load(), looks.Load(), wantSeen, wantLooks)
			}
		}
		expect(0, 0)
		change(1)
		expect(1, 1)
		change(5) // while it looks
		expect(1, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		expect(6, 2) // once for all five
		time.Sleep(time.Hour)
		expect(6, 2)
		change(1)
		expect(7, 3)
		cancel()
		synctest.Wait()
	})
}

// Wait ends with its context, and else when its time has passed.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Wait(t.Context(), time.Minute)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		Wait(ctx, time.Minute)
		if took := time.Since(began); took != time.Minute+time.Second {
			t.Errorf("it did not end with its context: %v", took)
		}
	})
}
