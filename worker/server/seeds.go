package server

import (
	"math/rand/v2"
	"sync"
)

// seeds gives requests that name no seed one of their own: at random, or from
// the worker's --seed on, so that the same requests in the same order give the
// same answers after every start.
type seeds struct {
	mu  sync.Mutex
	rng *rand.PCG // nil: at random
}

func (s *seeds) from(seed *uint64) {
	if seed != nil {
		s.rng = rand.NewPCG(*seed, 0)
	}
}

func (s *seeds) next() uint64 {
	if s.rng == nil {
		return rand.Uint64()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Uint64()
}
