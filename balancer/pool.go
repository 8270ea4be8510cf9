package balancer

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"roundhouse/balancer/ledger"
)

// pool is the workers that serve the same, with their queue. It lives as long
// as the worker set names it.
type pool struct {
	name    string
	group   ledger.Group
	workers atomic.Pointer[[]*worker] // in the group's order
	policy  atomic.Int32              // the group's
	queue   queue
	prefix  atomic.Pointer[ledger.PrefixTable]
	end     atomic.Pointer[string] // the marker that ends reasoning
	canary  atomic.Pointer[canary]
	gap     atomic.Int64           // how long its worker's turn may take; 0: there is none
	plugin  atomic.Pointer[string] // the policy plugin that orders the workers; empty: none

	// The counters of decisions, by policy and reason.
	decided [4 * len(reasons)]atomic.Pointer[prometheus.Counter]

	requests atomic.Int64 // of which spend gives a share to retries
	retried  atomic.Int64

	toldMu sync.Mutex
	untold map[*worker][]byte // chunks that other doors have not been told of; nil: there are none to tell

	mu      sync.Mutex
	known   []string                   // the models that its workers had when there last were some
	learned map[string]*ledger.Learned // by model
}

// canary gives one worker a fixed share of the pool's requests.
type canary struct {
	worker *worker
	share  float64
	debt   float64
	mu     sync.Mutex
}

func newPool(name string) *pool {
	p := &pool{name: name, learned: map[string]*ledger.Learned{}}
	p.workers.Store(&[]*worker{})
	return p
}

// policyNow is how the pool's workers are chosen.
func (p *pool) policyNow() ledger.Policy { return ledger.Policy(p.policy.Load()) }

// learn returns what is learned of a model's sizes.
func (p *pool) learn(model string) *ledger.Learned {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.learned[model]
	if l == nil {
		l = &ledger.Learned{}
		p.learned[model] = l
	}
	return l
}

// models is what the workers say that they serve; while there are none, what
// they said last, so that requests wait for them instead of being refused.
func (p *pool) models() []string {
	var names []string
	for _, w := range *p.workers.Load() {
		for _, m := range w.modelList() {
			if !slices.Contains(names, m) {
				names = append(names, m)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(names) > 0 {
		p.known = names
	}
	return p.known
}

// others reports whether a worker is left that has not failed this request, beside
// the one that it is at (nil: none).
func (p *pool) others(x *exchange, at *ledger.Worker) bool {
	now := x.d.now()
next:
	for _, w := range *p.workers.Load() {
		if !x.d.ledger.Usable(w.acct, now) || at == w.acct {
			continue
		}
		for _, t := range x.booking.tried {
			if t.Worker == w.acct && t.Generation == w.acct.Generation(x.d.ledger) {
				continue next
			}
		}
		return true
	}
	return false
}

// spend takes one retry out of the budget: a share of the requests so far,
// with a few to begin with.
func (p *pool) spend(share float64) bool {
	if float64(p.retried.Load()) >= 10+share*float64(p.requests.Load()) {
		return false
	}
	p.retried.Add(1)
	return true
}

// alive reports whether a worker of the pool can be asked.
func (p *pool) alive(d *Door) bool {
	now := d.now()
	for _, w := range *p.workers.Load() {
		if d.ledger.Usable(w.acct, now) {
			return true
		}
	}
	return false
}
