//go:build !linux

package cpu

import (
	"sync"
	"sync/atomic"
)

// bed is where threads sleep until a number changes.
type bed struct {
	mu sync.Mutex
	up sync.Cond
}

// sleep returns once wake was called, or at once if the number is not what was
// seen.
func (b *bed) sleep(number *atomic.Uint32, seen uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up.L = &b.mu
	for number.Load() == seen {
		b.up.Wait()
	}
}

// wake wakes all who sleep until the number changes.
func (b *bed) wake(*atomic.Uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up.Broadcast()
}
