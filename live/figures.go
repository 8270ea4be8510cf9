package live

import (
	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/measure/verdict"
)

// figures are those of each pool, and of all together before them.
func (h *Hub) figures(now *Now) []Figures {
	all, whole := sums{}, sums{}
	total := Figures{}
	out, held := []Figures{{}}, map[string]*Figures{}
	for i := range now.Workers {
		w := &now.Workers[i]
		if held[w.Pool] == nil {
			held[w.Pool] = &Figures{}
		}
		held[w.Pool].hold(w)
	}
	for i := range now.Pools {
		p := &now.Pools[i]
		w := h.windows[p.Name]
		if w == nil {
			w = &window{}
			h.windows[p.Name] = w
		}
		brief, wide := w.last(short), w.last(long)
		f := Figures{Pool: &p.Name, pool: p.Name, ready: p.Ready, waitingBefore: w.before()}
		if n := len(w.looks); n > 0 {
			f.Waiting = w.looks[n-1].waiting
		}
		f.fill(&brief, &wide)
		if of := held[p.Name]; of != nil {
			f.InFlight, f.charged, f.holds = of.InFlight, of.charged, of.holds
		}
		f.use()
		out = append(out, f)
		seconds, wider := max(all.seconds, brief.seconds), max(whole.seconds, wide.seconds)
		all.add(&brief)
		whole.add(&wide)
		all.seconds, whole.seconds = seconds, wider
		total.Waiting, total.InFlight, total.ready = total.Waiting+f.Waiting, total.InFlight+f.InFlight, total.ready+f.ready
		total.charged, total.holds = total.charged+f.charged, total.holds+f.holds
	}
	total.fill(&all, &whole)
	total.use()
	out[0] = total
	return out
}

// fill enters what happened in the last seconds and minutes.
func (f *Figures) fill(brief, wide *sums) {
	f.Requests, f.Failed, f.Refused = brief.rate(brief.ended), brief.rate(brief.failed), brief.rate(brief.turned)
	f.Tokens, f.PromptTokens = brief.rate(brief.tokens), brief.rate(brief.prompt)
	f.TTFT50, f.TTFT95, f.refusedLong = wide.percentile(0.5), wide.percentile(0.95), wide.rate(wide.turned)
	if wide.ended > 0 {
		share := round(float64(wide.failed) / float64(wide.ended))
		f.FailedShare = &share
	}
}

// hold adds what a worker holds.
func (f *Figures) hold(w *control.WorkerShown) {
	f.InFlight += w.Requests.InFlight
	if c := w.KV.CapacityTokens; c != nil && *c > 0 {
		f.holds += *c
		f.charged += w.KV.ChargedTokens + w.KV.ForeignTokens + w.KV.ElsewhereTokens
	}
}

// use computes how full the caches are.
func (f *Figures) use() {
	if f.holds > 0 {
		usage := round(float64(f.charged) / float64(f.holds))
		f.KVUsage = &usage
	}
}

// facts are what the verdict is made of.
func (h *Hub) facts(now *Now, figures []Figures) *verdict.Facts {
	f := &verdict.Facts{At: h.at, Journal: now.Journal}
	for _, d := range now.Doors {
		door := verdict.Door{ID: d.ID}
		if d.Error != nil {
			door.Silent = *d.Error
		}
		f.Doors = append(f.Doors, door)
	}
	for i, p := range now.Pools {
		x := &figures[i+1]
		pool := verdict.Pool{
			Name: p.Name, Desired: p.Desired, Ready: p.Ready, FailedShare: x.FailedShare, Refused: x.refusedLong, TTFT: x.TTFT95,
			KVPromised: x.KVUsage, Waiting: x.Waiting, WaitingBefore: x.waitingBefore,
		}
		for _, r := range now.Rotations {
			if r.Pool == p.Name {
				pool.Rotation = turning(&r)
			}
		}
		f.Pools = append(f.Pools, pool)
	}
	for i := range now.Workers {
		w := &now.Workers[i]
		x := verdict.Worker{
			ID: w.ID, Pool: w.Pool, State: string(w.State), Since: w.Since, NextTry: w.NextTry, Restarts: w.Restarts, Streams: w.Requests.InFlight,
			ReportAge: w.KV.ReportAgeSeconds, Speed: w.Traffic.TokensPerSecond,
		}
		switch {
		case w.State == phase.Failed && w.LastError != nil:
			x.Reason = *w.LastError
		case w.Reason != nil:
			x.Reason = *w.Reason
		}
		f.Workers = append(f.Workers, x)
	}
	return f
}

func turning(r *Rotation) verdict.Rotation {
	v := verdict.Rotation{State: r.State, Done: len(r.Done), Of: len(r.Done) + len(r.Queue)}
	if r.Current != nil {
		v.Current = *r.Current
		v.Of++
	}
	if r.Reason != nil {
		v.Reason = *r.Reason
	}
	if r.Ended != nil {
		v.Ended = *r.Ended
	}
	return v
}
