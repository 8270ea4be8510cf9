package balancer

import (
	"net/http"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/stored"
)

// handoverWithin is how long a new door waits for what another one hands over.
const handoverWithin = 3 * time.Second

// handOver is what this door knows that the next one must not learn anew. Its
// totals go on coming from then on, every 100 ms.
func (p *peers) handOver() control.Handover {
	d, v := p.d, p.d.current()
	h := control.Handover{Schema: 1, Totals: p.totals(), Stored: d.stored(v)}
	for _, w := range v.workers {
		r := d.ledger.Rates(w.Acct)
		at := w.Instance()
		h.Workers = append(h.Workers, control.WorkerFacts{ID: w.ID, Generation: at.Generation, Identity: at.Identity,
			Prefill: r.Prefill, Decode: r.Decode, TTFT: r.TTFT, Limit: r.Limit})
	}
	now := time.Now()
	for _, k := range v.keys.Keys {
		l := control.KeyRemaining{Name: k.Name}
		l.Requests, l.Tokens = k.Remaining(now)
		h.Remaining = append(h.Remaining, l)
	}
	for name, r := range v.routes {
		if name == r.cfg.Name {
			r.mu.Lock()
			h.Routes = append(h.Routes, control.RouteDebts{Name: name, Debt: append([]float64(nil), r.debt...)})
			r.mu.Unlock()
		}
	}
	h.Canaries = d.canaries.Told(true)
	for _, pool := range v.pools {
		h.Models = append(h.Models, pool.Facts()...)
		h.Pools = append(h.Pools, d.lengths(pool))
		if t := pool.Prefix.Load(); t != nil {
			h.Prefix = append(h.Prefix, pool.ExportPrefix(t))
		}
	}
	return h
}

// takeOver asks the doors that stand in the same folder for what they know,
// before this one accepts its first connection.
func (p *peers) takeOver() {
	if p.socket == "" {
		return
	}
	p.findBeside()
	p.mu.Lock()
	ways := make([]*way, 0, len(p.ways))
	for _, w := range p.ways {
		if w.peer == "" {
			ways = append(ways, w)
		}
	}
	p.mu.Unlock()
	for _, w := range ways {
		client := *w.client
		client.Timeout = handoverWithin
		ask := way{url: w.url, client: &client}
		var h control.Handover
		if err := ask.ask(p.ctx, http.MethodGet, "/handover", "", nil, &h); err != nil {
			p.d.log.Debug("nothing is handed over", "error", err.Error())
			continue
		}
		if h.Schema == 1 && h.Totals.Door != p.d.id {
			p.take(&h)
			p.d.log.Info("taken over from another door", "door", h.Totals.Door, "workers", len(h.Workers), "keys", len(h.Remaining), "stored_responses", len(h.Stored))
		}
	}
}

// take enters what another door hands over.
func (p *peers) take(h *control.Handover) {
	d, v := p.d, p.d.current()
	now := time.Now()
	facts := map[string]control.WorkerFacts{}
	for _, f := range h.Workers {
		facts[f.ID] = f
	}
	for _, w := range v.workers {
		if f, ok := facts[w.ID]; ok && w.Expect(f.Generation, f.Identity) {
			d.ledger.SetRates(w.Acct, ledger.Rates{Prefill: f.Prefill, Decode: f.Decode, TTFT: f.TTFT, Limit: f.Limit})
		}
	}
	for _, l := range h.Remaining {
		if k := v.keys.Configured(l.Name); k != nil {
			k.TakeRemaining(l.Requests, l.Tokens, now)
		}
	}
	for _, t := range h.Routes {
		if r := v.routes[t.Name]; r != nil {
			r.mu.Lock()
			if len(r.debt) == len(t.Debt) {
				copy(r.debt, t.Debt)
			}
			r.mu.Unlock()
		}
	}
	d.canaries.Hear(h.Canaries, now)
	for _, m := range h.Models {
		if pool := v.byName[m.Pool]; pool != nil {
			pool.Learn(m.Model).Take(m.Bytes, m.Output)
		}
	}
	for _, f := range h.Pools {
		if pool := v.byName[f.Pool]; pool != nil {
			lengths := make([]ledger.Length, len(f.Lengths))
			for i, at := range f.Lengths {
				lengths[i] = ledger.Length{Tokens: at.Tokens, Seconds: at.Seconds, Seen: at.Seen}
			}
			d.ledger.TakeLengths(&pool.Group, lengths)
		}
	}
	for i := range h.Prefix {
		if pool := v.byName[h.Prefix[i].Pool]; pool != nil {
			pool.TakePrefix(&h.Prefix[i])
		}
	}
	d.takeStored(v, h.Stored)
	p.hear(h.Totals)
}

// lengths is what was learned of the work of a pool's prompts.
func (d *common) lengths(p *fleet.Pool) control.PoolFacts {
	f := control.PoolFacts{Pool: p.Name}
	for _, at := range d.ledger.Lengths(&p.Group) {
		f.Lengths = append(f.Lengths, control.LengthFacts{Tokens: at.Tokens, Seconds: at.Seconds, Seen: at.Seen})
	}
	return f
}

// stored lists which worker has stored which response, the oldest first.
func (d *common) stored(v *snapshot) (out []control.Stored) {
	by := map[*ledger.Worker]*fleet.Worker{}
	for _, w := range v.workers {
		by[w.Acct] = w
	}
	for id, t := range d.responses.All() {
		w := by[t.Worker]
		if w == nil {
			continue
		}
		if at := w.Instance(); at.Known == t.Generation {
			out = append(out, control.Stored{ID: id, Worker: w.ID, Generation: at.Generation, Identity: at.Identity, Owner: t.Owner})
		}
	}
	return out
}

// takeStored enters where another door's responses lie. A worker that has turned
// since is found out by its identity.
func (d *common) takeStored(v *snapshot, all []control.Stored) {
	by := map[string]*fleet.Worker{}
	for _, w := range v.workers {
		by[w.ID] = w
	}
	for _, s := range all {
		w := by[s.Worker]
		if w == nil {
			continue
		}
		at := w.Instance()
		if at.Generation == s.Generation && (at.Identity == s.Identity || at.Identity == "" || s.Identity == "") {
			d.responses.Put(s.ID, stored.Entry{Try: ledger.Try{Worker: w.Acct, Generation: at.Known}, Owner: s.Owner})
		}
	}
}
