package balancer

import (
	"encoding/binary"
	"net/http"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/ledger"
)

// What is handed over of the prefix tables at most: the chunks used last.
const handedChunks = 1 << 18

// handoverWithin is how long a new door waits for what another one hands over.
const handoverWithin = 3 * time.Second

// handOver is what this door knows that the next one must not learn anew. Its
// totals go on coming from then on, every 100 ms.
func (d *Door) handOver() control.Handover {
	v := d.current()
	h := control.Handover{Schema: 1, Totals: d.totals(), Stored: d.held.export(v)}
	for _, w := range v.workers {
		r := d.ledger.Rates(w.acct)
		w.mu.Lock()
		h.Workers = append(h.Workers, control.WorkerFacts{ID: w.id, Generation: w.cfg.Generation, Identity: w.identity,
			Prefill: r.Prefill, Decode: r.Decode, TTFT: r.TTFT, Limit: r.Limit})
		w.mu.Unlock()
	}
	now := time.Now()
	for _, k := range v.keys.keys {
		l := control.KeyLevel{Name: k.name}
		l.Requests, l.Tokens = k.levels(now)
		h.Levels = append(h.Levels, l)
	}
	for name, r := range v.routes {
		if name == r.cfg.Name {
			r.mu.Lock()
			h.Routes = append(h.Routes, control.RouteTurns{Name: name, Debt: append([]float64(nil), r.debt...)})
			r.mu.Unlock()
		}
	}
	for _, p := range v.pools {
		h.Models = append(h.Models, p.facts()...)
		h.Pools = append(h.Pools, d.lengths(p))
		if t := p.prefix.Load(); t != nil {
			h.Prefix = append(h.Prefix, p.exportPrefix(t))
		}
	}
	return h
}

// takeOver asks the doors that stand in the same folder for what they know,
// before this one accepts its first connection.
func (d *Door) takeOver() {
	if d.opts.Socket == "" {
		return
	}
	d.findPeers(time.Now(), true)
	d.peers.mu.Lock()
	ways := make([]*way, 0, len(d.peers.ways))
	for _, w := range d.peers.ways {
		ways = append(ways, w)
	}
	d.peers.mu.Unlock()
	for _, w := range ways {
		ask := *w
		client := *w.client
		client.Timeout = handoverWithin
		ask.client = &client
		var h control.Handover
		if err := ask.ask(d.ctx, http.MethodGet, "/handover", nil, &h); err != nil {
			d.log.Debug("nothing is handed over", "error", err.Error())
			continue
		}
		if h.Schema == 1 && h.Totals.Door != d.id {
			d.take(&h)
			d.log.Info("taken over from another door", "door", h.Totals.Door, "workers", len(h.Workers), "keys", len(h.Levels), "stored_responses", len(h.Stored))
		}
	}
}

// take enters what another door hands over.
func (d *Door) take(h *control.Handover) {
	v := d.current()
	now := time.Now()
	facts := map[string]control.WorkerFacts{}
	for _, f := range h.Workers {
		facts[f.ID] = f
	}
	for _, w := range v.workers {
		f, ok := facts[w.id]
		w.mu.Lock()
		same := ok && f.Generation == w.cfg.Generation
		if same && w.identity == "" {
			w.identity = f.Identity // another process under this name is then known to be another
		}
		w.mu.Unlock()
		if same {
			d.ledger.SetRates(w.acct, ledger.Rates{Prefill: f.Prefill, Decode: f.Decode, TTFT: f.TTFT, Limit: f.Limit})
		}
	}
	for _, l := range h.Levels {
		if k := v.keys.configured(l.Name); k != nil {
			k.takeLevels(l.Requests, l.Tokens, now)
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
	for _, m := range h.Models {
		if p := v.byName[m.Pool]; p != nil {
			p.learn(m.Model).Take(m.Bytes, m.Output)
		}
	}
	for _, f := range h.Pools {
		if p := v.byName[f.Pool]; p != nil {
			lengths := make([]ledger.Length, len(f.Lengths))
			for i, at := range f.Lengths {
				lengths[i] = ledger.Length{Tokens: at.Tokens, Seconds: at.Seconds, Seen: at.Seen}
			}
			d.ledger.TakeLengths(&p.group, lengths)
		}
	}
	for i := range h.Prefix {
		if p := v.byName[h.Prefix[i].Pool]; p != nil {
			p.takePrefix(&h.Prefix[i])
		}
	}
	d.held.take(v, h.Stored)
	d.hear(h.Totals)
}

// facts is what was learned of the pool's models.
func (p *pool) facts() (out []control.ModelFacts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for model, l := range p.learned {
		bytes, output := l.Learned()
		out = append(out, control.ModelFacts{Pool: p.name, Model: model, Bytes: bytes, Output: output})
	}
	return out
}

// lengths is what was learned of the work of a pool's prompts.
func (d *Door) lengths(p *pool) control.PoolFacts {
	f := control.PoolFacts{Pool: p.name}
	for _, at := range d.ledger.Lengths(&p.group) {
		f.Lengths = append(f.Lengths, control.LengthFacts{Tokens: at.Tokens, Seconds: at.Seconds, Seen: at.Seen})
	}
	return f
}

// exportPrefix packs what a pool's prefix table knows.
func (p *pool) exportPrefix(t *ledger.PrefixTable) control.PrefixFacts {
	f := control.PrefixFacts{Pool: p.name}
	for _, w := range *p.workers.Load() {
		for w.slot >= len(f.Workers) {
			f.Workers = append(f.Workers, "")
		}
		f.Workers[w.slot] = w.id
	}
	f.Words = (len(f.Workers) + 63) / 64
	for _, k := range t.Export(handedChunks) {
		f.Chunks = binary.LittleEndian.AppendUint64(f.Chunks, k.Digest)
		for i := range f.Words {
			set := uint64(0)
			if i < len(k.Workers) {
				set = k.Workers[i]
			}
			f.Chunks = binary.LittleEndian.AppendUint64(f.Chunks, set)
		}
	}
	return f
}

// takePrefix enters what another door's table knows, under this door's bits.
func (p *pool) takePrefix(f *control.PrefixFacts) {
	t := p.prefix.Load()
	if t == nil || f.Words < 1 || f.Words > 1<<10 {
		return
	}
	slots := make([]int, len(f.Workers))
	for i, id := range f.Workers {
		slots[i] = -1
		for _, w := range *p.workers.Load() {
			if w.id == id {
				slots[i] = w.slot
			}
		}
	}
	size := 8 * (1 + f.Words)
	one := make([]uint64, 1)
	for b := f.Chunks; len(b) >= size; b = b[size:] {
		one[0] = binary.LittleEndian.Uint64(b)
		for bit, slot := range slots {
			if slot >= 0 && binary.LittleEndian.Uint64(b[8+8*(bit/64):])&(1<<(bit%64)) != 0 {
				t.Add(slot, one)
			}
		}
	}
}

// export lists which worker has stored which response, the oldest first.
func (h *held) export(v *view) (out []control.Stored) {
	h.mu.Lock()
	defer h.mu.Unlock()
	by := map[*ledger.Worker]*worker{}
	for _, w := range v.workers {
		by[w.acct] = w
	}
	for i := range h.ring {
		id := h.ring[(h.next+i)%len(h.ring)]
		t, ok := h.at[id]
		w := by[t.Worker]
		if !ok || w == nil {
			continue
		}
		w.mu.Lock()
		if w.generation() == t.Generation {
			out = append(out, control.Stored{ID: id, Worker: w.id, Generation: w.cfg.Generation, Identity: w.identity, Owner: t.owner})
		}
		w.mu.Unlock()
	}
	return out
}

// take enters where another door's responses lie. A worker that has turned
// since is found out by its identity.
func (h *held) take(v *view, all []control.Stored) {
	by := map[string]*worker{}
	for _, w := range v.workers {
		by[w.id] = w
	}
	for _, s := range all {
		w := by[s.Worker]
		if w == nil {
			continue
		}
		w.mu.Lock()
		same := w.cfg.Generation == s.Generation && (w.identity == s.Identity || w.identity == "" || s.Identity == "")
		t := ledger.Try{Worker: w.acct, Generation: w.generation()}
		w.mu.Unlock()
		if same {
			h.put(s.ID, holding{t, s.Owner})
		}
	}
}
