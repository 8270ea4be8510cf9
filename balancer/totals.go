package balancer

import (
	"context"
	"encoding/binary"
	"net/http"
	"slices"
	"sync"
	"time"

	"roundhouse/balancer/beat"
	"roundhouse/balancer/control"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
	"roundhouse/configs"
)

// run tells the other doors until the door ends: at a steady pace, and
// soon after a choice.
func (p *peers) run() {
	defer p.wg.Done()
	tick := time.NewTimer(tellEvery)
	defer tick.Stop()
	soon := time.NewTimer(time.Hour)
	defer soon.Stop()
	var told time.Time
	changed := p.changed // nil while soon is set
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-changed:
			soon.Reset(time.Until(told.Add(p.gap(len(p.d.current().workers)))))
			changed = nil
			continue
		case <-soon.C:
			p.tell(func(w *way) bool { return w.near(p.d.current().fleet()) }, false)
		case <-tick.C:
			p.find(time.Now())
			p.countElsewhere(time.Now())
			p.tell(func(*way) bool { return true }, false)
			tick.Reset(p.pace())
		}
		changed, told = p.changed, time.Now()
	}
}

// pace is how long it is until other doors are told again, or looked for where there is
// none.
func (p *peers) pace() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ways)+len(p.heard) == 0 {
		return beat.Next(lookEvery, 0)
	}
	return tellEvery
}

// tell sends this door's totals to other doors. It does not wait for any of them,
// unless these are the last. Doors of another fleet hear nothing of workers.
func (p *peers) tell(whom func(*way) bool, last bool) {
	fleet := p.d.current().fleet()
	p.mu.Lock()
	var idle, near, fresh []*way
	for _, w := range p.ways {
		if (w.busy && !last) || time.Now().Before(w.rest) || !whom(w) {
			continue
		}
		w.busy = true
		if idle = append(idle, w); w.near(fleet) {
			near = append(near, w)
		}
		if w.door != "" && w.knows != w.door {
			fresh = append(fresh, w)
		}
	}
	listeners := false
	for _, h := range p.heard {
		listeners = listeners || sameFleet(h.totals.Fleet, fleet)
	}
	p.mu.Unlock()
	if len(idle) == 0 {
		return
	}
	t := p.totals()
	t.Gone = last
	t.Usage = p.budgets(last)
	slim := t
	slim.Workers = []control.WorkerTotal{}
	if len(near) > 0 {
		t.Canaries = p.d.canaries.Told(false)
		for _, pool := range p.d.current().pools {
			t.Cached = append(t.Cached, pool.TakeUntold(listeners)...)
		}
	}
	var others []control.FolderUse
	if len(fresh) > 0 {
		others = p.d.usage.Others(time.Now())
	}
	token := p.d.current().set.PeerToken
	var told sync.WaitGroup
	for _, w := range idle {
		told.Go(func() {
			var ack control.TotalsAck
			body := slim
			if slices.Contains(near, w) {
				body = t
			}
			isNew := slices.Contains(fresh, w)
			if isNew {
				body.Others = others
			}
			err := w.ask(context.Background(), http.MethodPut, "/totals", token, &body, &ack)
			p.mu.Lock()
			defer p.mu.Unlock()
			w.took(p.d.id, ack.Door, ack.Fleet, err)
			if isNew && err == nil {
				w.knows = ack.Door
			}
			p.noteNear()
		})
	}
	if last {
		told.Wait()
	}
	p.wg.Go(told.Wait)
}

// totals is what this door tells the others.
func (p *peers) totals() control.Totals {
	v := p.d.current()
	p.mu.Lock()
	p.serial++
	t := control.Totals{Door: p.d.id, Fleet: v.fleet(), Serial: p.serial, Leaving: p.d.draining.Load()}
	p.mu.Unlock()
	now := p.d.now()
	for _, w := range v.workers {
		at := w.Instance()
		booked, e := p.d.ledger.Totals(w.Acct, now)
		if booked != at.Known {
			continue // it has just turned; the next totals have it
		}
		t.Workers = append(t.Workers, control.WorkerTotal{
			ID: w.ID, Generation: at.Generation, Identity: at.Identity,
			ChargedTokens: e.KV, PrefillTokens: e.Prefill, ResidentTokens: e.Resident, InFlight: e.InFlight,
		})
	}
	for _, k := range v.keys.Keys {
		u := control.KeyUse{Name: k.Name}
		u.Requests, u.Tokens, u.Live = k.Total()
		t.Keys = append(t.Keys, u)
	}
	return t
}

// budgets is what this door's folder knows of keys with a budget, once a second.
func (p *peers) budgets(last bool) *control.FolderUse {
	now := time.Now()
	p.mu.Lock()
	due := last || now.Sub(p.budget) >= time.Second
	if due {
		p.budget = now
	}
	p.mu.Unlock()
	var names []string
	for _, k := range p.d.current().keys.Keys {
		if due && (k.Cfg.Day != configs.Budget{} || k.Cfg.Month != configs.Budget{}) {
			names = append(names, k.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return p.d.usage.Told(names, now)
}

// hear takes another door's totals.
func (p *peers) hear(t control.Totals) {
	if t.Door == p.d.id || !surface.ValidID(t.Door) {
		return
	}
	now := time.Now()
	p.mu.Lock()
	old := p.heard[t.Door]
	if old != nil && t.Serial <= old.totals.Serial && t.Serial > 1 {
		p.mu.Unlock()
		return
	}
	kept := t
	kept.Cached, kept.Canaries, kept.Others = nil, nil, nil
	v := p.d.current()
	h := &heard{kept, now, v.sharedWith(&t)}
	p.heard[t.Door] = h
	p.mu.Unlock()
	if old == nil || old.totals.Leaving != t.Leaving || old.totals.Gone != t.Gone || !slices.Equal(old.serves, h.serves) {
		p.shareOut(v)
	}
	p.countKeys(old, &t, now)
	p.d.usage.Hear(t.Usage)
	for i := range t.Others {
		p.d.usage.Hear(&t.Others[i])
	}
	if sameFleet(t.Fleet, v.fleet()) {
		p.hearCached(t.Cached)
		p.d.canaries.Hear(t.Canaries, now)
	}
	p.countElsewhere(now)
}

// countKeys takes what another door's clients have used since it last said out
// of the same keys' buckets here. Of a door that is new nothing is known to
// have been used since.
func (p *peers) countKeys(old *heard, t *control.Totals, now time.Time) {
	before := map[string]control.KeyUse{}
	if old != nil {
		for _, u := range old.totals.Keys {
			before[u.Name] = u
		}
	}
	keys := p.d.current().keys
	for _, u := range t.Keys {
		k := keys.Configured(u.Name)
		if k == nil {
			continue
		}
		was, known := before[u.Name]
		if !known || was.Requests > u.Requests {
			was = u
		}
		k.UsedElsewhere(u.Requests-was.Requests, u.Tokens-was.Tokens, p.liveOf(u.Name), now)
	}
}

// countElsewhere enters into the ledger what the other doors have at each
// worker. A door that is gone, or silent for long, has nothing there.
func (p *peers) countElsewhere(now time.Time) {
	p.mu.Lock()
	silent := false
	v := p.d.current()
	sums := map[string][]control.WorkerTotal{}
	for id, h := range p.heard {
		if h.totals.Gone || now.Sub(h.at) > silentFor {
			delete(p.heard, id)
			silent = true
			continue
		}
		if !sameFleet(h.totals.Fleet, v.fleet()) {
			continue
		}
		for _, t := range h.totals.Workers {
			sums[t.ID] = append(sums[t.ID], t)
		}
	}
	none := len(p.heard) == 0 && !silent
	p.mu.Unlock()
	if none {
		return
	}
	for _, w := range v.workers {
		at := w.Instance()
		var e ledger.Elsewhere
		for _, t := range sums[w.ID] {
			if sameProcess(&t, at) {
				e.Add(ledger.Elsewhere{KV: t.ChargedTokens, Prefill: t.PrefillTokens, Resident: t.ResidentTokens, InFlight: t.InFlight})
			}
		}
		p.d.ledger.SetElsewhere(w.Acct, at.Known, e)
	}
	if silent {
		p.shareOut(v)
		for _, k := range v.keys.Keys {
			k.UsedElsewhere(0, 0, p.liveOf(k.Name), now)
		}
	}
	for _, pool := range v.pools {
		pool.Pump(&p.d.fleet) // what another door has released may be room here
	}
}

// hearCached enters what other doors' requests have brought into the workers'
// caches.
func (p *peers) hearCached(all []control.Cached) {
	if len(all) == 0 {
		return
	}
	by := map[string]control.Cached{}
	for _, c := range all {
		by[c.Worker] = c
	}
	for _, w := range p.d.current().workers {
		c, ok := by[w.ID]
		t := w.Pool.Prefix.Load()
		if !ok || t == nil {
			continue
		}
		chunks := make([]uint64, 0, len(c.Chunks)/8)
		for b := c.Chunks; len(b) >= 8; b = b[8:] {
			chunks = append(chunks, binary.LittleEndian.Uint64(b))
		}
		t.Add(w.Slot, chunks)
	}
}

// gap is how long after one tell the next may come.
func (p *peers) gap(workers int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(tellSoon, time.Duration(workers*len(p.ways))*tellEach), tellEvery)
}
