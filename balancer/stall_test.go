package balancer_test

import (
	"sync"
	"testing"
	"time"
)

// unstalled makes a check whose limits are real time, and which therefore says
// nothing where the machine held the whole process up for as long: what failed
// while it did so is made again.
func unstalled(t *testing.T, most time.Duration, check func() error) {
	t.Helper()
	for {
		longest := watchStalls()
		err := check()
		switch stall := longest(); {
		case err == nil:
			return
		case stall < most:
			t.Error(err)
			return
		default:
			t.Logf("once more, since this process stood still for %v: %v", stall, err)
		}
	}
}

// watchStalls looks how long this process stands still at most, until it is asked.
func watchStalls() (longest func() time.Duration) {
	var most time.Duration
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				most = max(most, time.Since(last))
				return
			case <-tick.C:
				now := time.Now()
				most, last = max(most, now.Sub(last)), now
			}
		}
	})
	return func() time.Duration {
		close(stop)
		watch.Wait()
		return most
	}
}
