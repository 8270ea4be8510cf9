package ledger

// Elsewhere is what other doors have at a worker, by their own accounts. It
// counts in every choice like this door's own charges, and is no foreign load.
type Elsewhere struct {
	KV       int64 // charged
	Prefill  int64 // charged
	Resident int64 // of their requests, really there by now
	InFlight int
}

// most bounds a figure that another door tells.
const most = 1 << 40

// Add enters one more door.
func (e *Elsewhere) Add(o Elsewhere) {
	bound := func(n int64) int64 { return min(max(n, 0), most) }
	e.KV = bound(e.KV + bound(o.KV))
	e.Prefill = bound(e.Prefill + bound(o.Prefill))
	e.Resident = bound(e.Resident + bound(o.Resident))
	e.InFlight = int(bound(int64(e.InFlight) + bound(int64(o.InFlight))))
}

// SetElsewhere replaces what the other doors have at a worker of that
// generation.
func (l *Ledger) SetElsewhere(w *Worker, generation uint64, e Elsewhere) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation == w.generation {
		w.elsewhere = e
		w.post()
	}
}

// Totals is what this door has at a worker, as other doors are told it.
func (l *Ledger) Totals(w *Worker, now int64) (generation uint64, e Elsewhere) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w.generation, Elsewhere{KV: w.kv, Prefill: w.prefill, Resident: w.resident(now), InFlight: w.inflight}
}

// Rates are what a door has learned of a worker, and hands over to the next.
type Rates struct {
	Prefill float64 `json:"prefill"` // tokens a second; 0: not learned
	Decode  float64 `json:"decode"`
	TTFT    float64 `json:"ttft"`
	Limit   int     `json:"limit"`
}

// Rates returns what was learned of a worker.
func (l *Ledger) Rates(w *Worker) Rates {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Rates{Prefill: w.rate.v, Decode: w.decode.v, TTFT: w.ttft.v, Limit: w.limit}
}

// leastRate is below every rate and time that can be measured: a token in a
// week, a thousandth of a millisecond. What is divided by it is a number still.
const leastRate = 1e-6

// SetRates takes over what another door has learned of a worker, where this
// one has learned nothing yet.
func (l *Ledger) SetRates(w *Worker, r Rates) {
	l.mu.Lock()
	defer l.mu.Unlock()
	take := func(a *average, v float64) {
		if a.n == 0 && v >= leastRate {
			a.add(v)
			a.n = 20
		}
	}
	take(&w.rate, r.Prefill)
	take(&w.decode, r.Decode)
	take(&w.ttft, r.TTFT)
	if w.limit == 0 && r.Limit > 0 {
		w.limit = r.Limit
	}
	w.post()
}
