package fleet

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/control"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/wait"
	"roundhouse/configs"
	"roundhouse/configs/workerid"
)

// Pool is the workers that serve the same, with their queue. It lives as long
// as the worker set names it.
type Pool struct {
	Name    string
	before  int // workers that the fleet had when it came
	Group   ledger.Group
	Workers atomic.Pointer[[]*Worker] // in the group's order
	policy  atomic.Int32              // the group's
	Queue   wait.Queue
	Tally   Tally
	Prefix  atomic.Pointer[ledger.PrefixTable]
	End     atomic.Pointer[string] // the marker that ends reasoning
	canary  atomic.Pointer[canary]
	named   atomic.Bool // the configuration names its models
	partial atomic.Pointer[partial]
	scrapes atomic.Pointer[configs.Scrape]
	Gap     atomic.Int64           // how long its worker's turn may take; 0: there is none
	Plugin  atomic.Pointer[string] // the policy plugin that orders the workers; empty: none

	Decided metrics.Decided // the counters of decisions

	Retries Retries

	toldMu sync.Mutex
	Untold map[*Worker][]byte // chunks that other doors have not been told of; nil: there are none to tell

	mu      sync.Mutex
	known   []string                   // the models that its workers had when there last were some
	learned map[string]*ledger.Learned // by model
}

// canary gives one worker a fixed share of the pool's requests.
type canary struct {
	worker *Worker
	share  float64
	debt   float64
	mu     sync.Mutex
}

// NewPool makes a pool without workers.
func NewPool(name string) *Pool {
	p := &Pool{Name: name, learned: map[string]*ledger.Learned{}}
	p.Workers.Store(&[]*Worker{})
	return p
}

// PolicyNow is how the pool's workers are chosen.
func (p *Pool) PolicyNow() ledger.Policy { return ledger.Policy(p.policy.Load()) }

// Learn returns what is learned of a model's sizes.
func (p *Pool) Learn(model string) *ledger.Learned {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.learned[model]
	if l == nil {
		l = &ledger.Learned{}
		p.learned[model] = l
	}
	return l
}

// Models is what the workers say that they serve; while there are none, what
// they said last, so that requests wait for them instead of being refused.
func (p *Pool) Models() []string {
	var names []string
	for _, w := range *p.Workers.Load() {
		for _, m := range w.ModelList() {
			if !slices.Contains(names, m) {
				names = append(names, m)
			}
		}
	}
	p.compare(names)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(names) > 0 {
		p.known = names
	}
	return p.known
}

// Says reports whether the configuration or the workers have said what the pool
// serves. While a worker was not asked yet, it may serve what no other does.
func (p *Pool) Says() bool {
	if p.named.Load() {
		return true
	}
	return len(p.Models()) > 0 && !slices.ContainsFunc(*p.Workers.Load(), (*Worker).unasked)
}

// Others reports whether a worker is left that has what a request asks for and has not
// failed it, beside the one that it is at (nil: none).
func (p *Pool) Others(f *Fleet, ask *ledger.Ask, tried []ledger.Try, at *ledger.Worker) bool {
	now := f.now()
next:
	for _, w := range *p.Workers.Load() {
		if !f.ledger.Usable(w.Acct, now) || at == w.Acct || ask.Only != nil && !ask.Only(w.Acct) {
			continue
		}
		for _, t := range tried {
			if t.Worker == w.Acct && t.Generation == w.Acct.Generation(f.ledger) {
				continue next
			}
		}
		return true
	}
	return false
}

// Alive reports whether a worker of the pool can be asked.
func (p *Pool) Alive(f *Fleet) bool {
	now := f.now()
	for _, w := range *p.Workers.Load() {
		if f.ledger.Usable(w.Acct, now) {
			return true
		}
	}
	return false
}

// Pump gives room to those who wait, as long as there is some, and tells if there is not
// enough.
func (p *Pool) Pump(f *Fleet) {
	if p.Queue.Len() == 0 {
		return
	}
	p.Queue.Pump(&wait.Room{Ledger: f.ledger, Group: &p.Group, Now: f.now, Workers: p.accounts})
	if p.Queue.Len() > 0 {
		f.LookSoon()
	}
}

// accounts yields the accounts of the pool's workers.
func (p *Pool) accounts(yield func(*ledger.Worker) bool) {
	for _, w := range *p.Workers.Load() {
		if !yield(w.Acct) {
			return
		}
	}
}

// scrapeInterval is how often a worker with requests is scraped.
func (p *Pool) scrapeInterval() time.Duration {
	if s := p.scrapes.Load(); s.Interval > 0 {
		return time.Duration(s.Interval)
	}
	return 250 * time.Millisecond
}

// ApplyPool makes the pool of a configuration, or brings p, which is its pool
// already, up to date. pools is how many there are, and kept takes its workers.
func (f *Fleet) ApplyPool(p *Pool, cfg *control.Pool, pools int, kept map[*Worker]bool) *Pool {
	if p == nil {
		p = NewPool(cfg.Name)
		p.before = int(f.met.Load())
		p.Prefix.Store(ledger.NewPrefixTable(prefixBytes / max(1, pools)))
		f.ledger.Begin(&p.Group, int(xxhash.Sum64String(f.ID)%1024))
	}
	end, scrapes := cfg.ReasoningEnd, cfg.Scrape
	p.End.Store(&end)
	p.scrapes.Store(&scrapes)
	p.named.Store(len(cfg.Models) > 0)
	p.Gap.Store(int64(cfg.PatienceSeconds * 1e9))
	p.setAdapters(cfg.Adapters)
	var workers []*Worker
	var accts []*ledger.Worker
	for _, wc := range cfg.Workers {
		up, err := conn.NewUpstream(wc.URL)
		if err != nil {
			continue // it has no address yet
		}
		w := p.find(wc.Name)
		if w == nil {
			w = &Worker{ID: workerid.Of(cfg.Name, wc.Name), Pool: p, Slot: p.freeSlot(workers)}
			f.met.Add(1)
			w.Acct = &ledger.Worker{ID: w.ID, Of: w}
		}
		w.apply(f, wc, up)
		kept[w] = true
		workers = append(workers, w)
		accts = append(accts, w.Acct)
	}
	plugin, _ := extend.PolicyName(cfg.Policy)
	p.Plugin.Store(&plugin)
	policy, ok := ledger.ParsePolicy(cfg.Policy)
	if !ok {
		policy = ledger.LeastKV
	}
	p.setCanary(cfg.Canary, workers)
	p.policy.Store(int32(policy))
	f.ledger.SetGroup(&p.Group, policy, accts)
	p.Workers.Store(&workers)
	return p
}

// prefixBytes is the budget of all prefix tables together.
const prefixBytes = 64 << 20

func (p *Pool) find(name string) *Worker {
	id := workerid.Of(p.Name, name)
	for _, w := range *p.Workers.Load() {
		if w.ID == id {
			return w
		}
	}
	return nil
}

// freeSlot returns the least bit of the prefix table that no worker uses.
func (p *Pool) freeSlot(also []*Worker) int {
	all := slices.Concat(*p.Workers.Load(), also)
	taken := make([]bool, len(all)+1)
	for _, w := range all {
		if w.Slot < len(taken) {
			taken[w.Slot] = true
		}
	}
	slot := slices.Index(taken, false)
	p.forgetSlot(slot)
	return slot
}

func (p *Pool) forgetSlot(slot int) {
	if t := p.Prefix.Load(); t != nil {
		t.Forget(slot)
	}
}

func (p *Pool) setCanary(c *control.Canary, workers []*Worker) {
	p.canary.Store(nil)
	if c == nil {
		return
	}
	for _, w := range workers {
		if w.ID == workerid.Of(p.Name, c.Worker) {
			p.canary.Store(&canary{worker: w, share: c.Share})
		}
	}
}

// Patience guesses after how many seconds a refused client may come again:
// when a part of what waits will have been served.
func (p *Pool) Patience(f *Fleet) int {
	waiting := float64(p.Queue.Len())
	rate := 0.0
	for _, w := range *p.Workers.Load() {
		if v := f.ledger.Account(w.Acct, f.now()); v.Decode > 0 && v.InFlight > 0 {
			rate += v.Decode * float64(v.InFlight) / 256
		}
	}
	if rate == 0 {
		return 2
	}
	return int(math.Min(60, math.Max(1, waiting/rate/4)))
}

// Trial gives a worker under trial its exact share: a request prefers it, or
// spares it. Both are nil where there is none.
func (p *Pool) Trial() (prefer, spare *ledger.Worker) {
	c := p.canary.Load()
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.debt += c.share; c.debt >= 1 {
		c.debt--
		return c.worker.Acct, nil
	}
	return nil, c.worker.Acct
}
