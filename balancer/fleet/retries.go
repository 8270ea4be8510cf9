package fleet

import "sync"

// The window over which retries are measured by requests, in slots of a second.
const (
	retrySlots  = 10
	freeRetries = 10 // that a window allows however few its requests are
)

// Retries holds the requests that are sent again to a share of those that came in the
// last seconds: where all workers fail, retries must not multiply what comes, however
// quiet the hours before were.
type Retries struct {
	mu    sync.Mutex
	slots [retrySlots]retrySlot
}

// retrySlot is what happened within one second.
type retrySlot struct {
	second          int64
	asked, repeated int
}

// at is the slot of a moment by the door's clock. r.mu is held.
func (r *Retries) at(now int64) *retrySlot {
	second := now / 1e9
	s := &r.slots[second%retrySlots]
	if s.second < second {
		*s = retrySlot{second: second}
	}
	return s
}

// Came counts a request.
func (r *Retries) Came(now int64) {
	r.mu.Lock()
	r.at(now).asked++
	r.mu.Unlock()
}

// Spend takes one retry out of the budget, and reports whether there was one left.
func (r *Retries) Spend(now int64, share float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	here := r.at(now)
	asked, repeated := 0, 0
	for _, s := range r.slots {
		if here.second-s.second < retrySlots {
			asked += s.asked
			repeated += s.repeated
		}
	}
	if float64(repeated) >= freeRetries+share*float64(asked) {
		return false
	}
	here.repeated++
	return true
}
