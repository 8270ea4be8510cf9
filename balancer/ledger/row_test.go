package ledger

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plain is one worker as a choice sees it that reads the accounts themselves.
type plain struct {
	w                *Worker
	hit, believed    int64
	wait, fill, cost float64
	grown            float64
	waits            bool // the request does better to wait at the door
	out              string
}

// plainRate is the mean of the rates that have been learned.
func plainRate(g *Group) float64 {
	sum, n := 0.0, 0
	for _, w := range g.workers {
		if w.rate.n > 0 {
			sum += w.rate.v
			n++
		}
	}
	if n == 0 {
		return priorRate
	}
	return sum / float64(n)
}

// ahead is the work before the request's first token, and how many it delays.
func (p *plain) ahead(g *Group, a *Ask, perToken, second float64) (ahead, behind float64) {
	w := p.w
	elsewhere := float64(w.elsewhere.Prefill) * perToken
	if !w.report.HasPrefill {
		ahead = float64(w.work) + elsewhere
		if w.prompts > 0 && w.elsewhere.Prefill == 0 {
			done, one := float64(a.Now-w.turned)/1e9/second, float64(w.work)/float64(w.prompts)
			if done > one {
				done = max(0, 2*one-done)
			}
			ahead -= done
		}
		return ahead, float64(a.Behind) / float64(len(g.workers))
	}
	if w.work == 0 && elsewhere == 0 {
		return 0, 0
	}
	shorter, below, all := 1.0, 0.0, 0.0
	for i, work := range g.mix {
		all += work
		if i <= classOf(a.Prompt) {
			below += work
		}
	}
	if all > 0 {
		shorter = below / all
	}
	at := &w.backlog[classOf(a.Prompt-p.hit)]
	ahead = float64(at.work) + elsewhere*shorter
	if longer := float64(w.work-at.work) + elsewhere*(1-shorter); longer > 0 {
		each := max(1, 2*float64(w.work)/float64(max(w.prefill, 1))-1)
		meanwhile := float64(a.Prompt-p.hit) * each
		if at.work > 0 {
			meanwhile *= min(1, (8+float64(w.prompts))/16)
		}
		ahead += min(longer, meanwhile)
	}
	return ahead, float64(w.prompts - at.n)
}

// leastWork is the prompt's work at the worker that has the most of it.
func leastWork(g *Group, a *Ask) float64 {
	most := int64(0)
	if a.Hits != nil {
		for i, w := range g.workers {
			most = max(most, w.cached(min(int64(a.Hits[i]), a.Prompt)))
		}
	}
	return float64(g.curve.work(a.Prompt, most))
}

// weigh computes the terms.
func (p *plain) weigh(g *Group, a *Ask, slowStart int64) {
	w := p.w
	trust := w.trust(a.Now)
	foreign, need := float64(w.foreign)*trust, float64(a.Prompt+a.Expect)
	rate, perToken := plainRate(g), max(g.perToken.v, 1)
	second := 1 / rate
	if w.rate.n >= fewSamples && math.Abs(w.rate.v-rate) >= sameRate*rate {
		second = 1 / w.rate.v
	}
	own := float64(g.curve.work(a.Prompt, p.hit))
	ahead, behind := p.ahead(g, a, perToken, second)
	p.waits = !w.report.HasPrefill && w.queues >= a.Now && float64(w.work)+float64(w.elsewhere.Prefill) > 0 && !a.Force && !a.Eager && a.Prefer == nil && ahead*second > inHand
	p.wait = (ahead + float64(w.report.foreignPrefill)*perToken*trust + own) * second
	there, noRoom := w.there(), false
	if w.capacity > 0 {
		most := float64(w.capacity)
		held := float64(w.kv+w.elsewhere.KV-min(w.twice, w.kv, w.elsewhere.KV)) + foreign
		p.fill = (held + need) / most
		if p.fill > lowFill && p.hit > 0 {
			p.fill = (held + need - float64(w.live(a, p.hit))) / most
		}
		noRoom = w.report.HasPrefill && p.fill > 1+float64(there)*float64(a.Expect)/2/most && (there > 0 || foreign > most/2)
		p.wait *= 1 + p.fill/2
	} else {
		noRoom = w.limit > 0 && there >= w.limit && trust > 0
		p.wait *= 1 + float64(there)/256
	}
	p.cost, p.grown = p.wait+own*second*behind, 1
	if !w.report.HasPrefill && g.crowding.gap > 0 {
		coming := min(1/g.crowding.gap/float64(len(g.workers)), rate/max(1, g.crowding.work.v))
		p.cost += coming * ahead * second * (own - leastWork(g, a)) * second
	}
	if w.theirs {
		p.cost += g.crowding.share * g.crowding.work.v * second * (1 + p.fill/2)
	}
	first := int64(endless)
	for _, o := range g.workers {
		if o.ready {
			first = min(first, o.joined)
		}
	}
	of := func(age int64) float64 { return min(max(float64(age)/float64(slowStart), 0.1), 1) }
	if age := a.Now - w.joined; slowStart > 0 && age < slowStart && w.joined > first {
		share := of(age) / of(a.Now-first)
		p.grown = share
		p.wait /= share
		p.cost /= share
		p.fill = min(p.fill/share, max(p.fill, 1))
	}
	if noRoom && !a.Force {
		p.out = "full"
	}
}

// why says why a worker cannot be asked.
func (p *plain) why(a *Ask) string {
	w := p.w
	switch {
	case !w.ready:
		return "not ready"
	case a.Prefer != nil && a.Prefer != w:
		return "sticky elsewhere"
	case a.Spare == w:
		return "on trial"
	}
	for _, t := range a.Tried {
		if t.Worker == w && t.Generation == w.generation {
			return "tried already"
		}
	}
	if out := w.breaker.open(a.Now); out != "" {
		return out
	}
	if w.maxLen > 0 && a.Prompt >= w.maxLen {
		return "context too short"
	}
	return ""
}

// plainly weighs all workers of a group.
func plainly(g *Group, a *Ask, slowStart int64) []plain {
	all := make([]plain, len(g.workers))
	for i, w := range g.workers {
		p := &all[i]
		p.w = w
		if a.Hits != nil {
			p.believed = min(int64(a.Hits[i]), a.Prompt)
			p.hit = w.cached(p.believed)
		}
		if p.out = p.why(a); p.out == "" {
			p.weigh(g, a, slowStart)
		}
	}
	return all
}

// better orders two workers under a policy, as docs/routing.md tells it.
func better(policy Policy, a, b *plain) bool {
	if policy == LeastInflight {
		return float64(a.w.there()+1)/a.grown < float64(b.w.there()+1)/b.grown
	}
	x, y := a.cost, b.cost
	if policy == Fastest {
		x, y = a.wait+barrier(a.fill), b.wait+barrier(b.fill)
	}
	if d := math.Abs(x - y); d > 1e-3 && (d > 0.01*a.wait || d > 0.01*b.wait) {
		return x < y
	}
	if n, m := a.w.there(), b.w.there(); n != m {
		return n < m
	}
	return b.fill-a.fill > nearFill
}

// plainest chooses by turns among what was weighed; nil: nobody can take it.
func plainest(g *Group, all []plain) *plain {
	low := math.Inf(1)
	for i := range all {
		if all[i].out == "" {
			low = min(low, all[i].fill)
		}
	}
	var best *plain
	open := slices.ContainsFunc(all, func(p plain) bool { return p.out == "" && !p.waits })
	for k := range all {
		p := &all[(g.turn+k)%len(all)]
		switch {
		case p.out != "":
		case p.waits && open && g.Policy > Fastest:
		case g.Policy == LeastKV && p.fill >= lowFill && p.fill > low+nearFill:
		case best == nil || g.Policy != RoundRobin && better(g.Policy, p, best):
			best = p
		}
	}
	return best
}

// plainVerdict is what becomes of a request.
func plainVerdict(all []plain) Verdict {
	out := map[string]int{}
	for _, p := range all {
		out[p.out]++
	}
	switch {
	case out[""] > 0 && slices.ContainsFunc(all, func(p plain) bool { return p.out == "" && !p.waits }):
		return Picked
	case out[""] > 0:
		return Full
	case out["full"] > 0:
		return Full
	}
	return None
}

// fits lowers the estimate of a prompt to the longest context of those that can be
// asked, where no longer one is to be waited for.
func fits(all []plain, a *Ask) bool {
	longest := int64(0)
	for _, p := range all {
		long := p.w.maxLen == 0 || a.Prompt < p.w.maxLen
		switch {
		case p.out == "", !a.AnyLength && long && p.w.ready:
			return false
		case p.out == "context too short":
			longest = max(longest, p.w.maxLen)
		}
	}
	if longest > 0 {
		a.Prompt = longest - 1
	}
	return longest > 0
}

// TestRows makes the same choices from the workers' rows as from their
// accounts, with the same terms, whatever has happened to them.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, g, ws := fleet(rapid.IntRange(1, 6).Draw(t, "workers"), 50_000)
		l.SetGroup(g, Policy(rapid.IntRange(0, 3).Draw(t, "policy")), ws)
		slowStart := rapid.Int64Range(0, 300).Draw(t, "slow start")
		l.Configure(Breaker{Failures: 2, Open: 100}, slowStart)
		s := &stirred{l: l, g: g, ws: ws, now: 10}
		t.Repeat(map[string]func(*rapid.T){
			"pick": func(t *rapid.T) {
				a := s.ask(t)
				all := plainly(g, a, slowStart)
				b := *a
				if v := plainVerdict(all); v == None && b.Spare != nil {
					b.Spare = nil
					all = plainly(g, &b, slowStart)
				}
				if fits(all, &b) {
					all = plainly(g, &b, slowStart)
				}
				want := plainest(g, all)
				c := &Charge{}
				verdict, _ := l.Pick(g, a, c)
				for i, p := range all {
					got := l.Weighed(nil, g, p.w, 1, s.now)[0]
					if got.Out != p.out || got.Hit != p.hit || p.out == "" && (got.Wait != p.wait || got.Fill != p.fill || g.terms[i].cost != p.cost) {
						t.Fatalf("%s: the row says %+v, cost %v; the account %+v", p.w.ID, got, g.terms[i].cost, p)
					}
				}
				if verdict != plainVerdict(all) || verdict == Picked && c.worker != want.w {
					t.Fatalf("picked %v, %v; want %+v", verdict, c.worker, want)
				}
				if verdict == Picked {
					s.live = append(s.live, c)
				}
			},
			"first": func(t *rapid.T) { l.First(s.some(t), s.now) },
			"grow":  func(t *rapid.T) { l.Grow(s.some(t), rapid.Int64Range(1, 3000).Draw(t, "n")) },
			"settle": func(t *rapid.T) {
				l.Settle(s.some(t), rapid.Int64Range(1, 9000).Draw(t, "prompt"), rapid.Int64Range(-1, 9000).Draw(t, "cached"))
			},
			"release": func(t *rapid.T) { l.Release(s.some(t), Outcome(rapid.IntRange(0, 4).Draw(t, "how")), s.now) },
			"worker":  s.worker,
			"seats": func(t *rapid.T) {
				some := append([]*Worker(nil), ws[rapid.IntRange(0, len(ws)-1).Draw(t, "without"):]...)
				l.SetGroup(g, g.Policy, some)
			},
			"": func(t *rapid.T) {
				s.posted(t)
				s.now += rapid.Int64Range(1, 40).Draw(t, "time")
			},
		})
	})
}

// stirred is a ledger to which things happen.
type stirred struct {
	l    *Ledger
	g    *Group
	ws   []*Worker
	live []*Charge
	now  int64
}

// posted compares what stands in the rows with what would be posted now.
func (s *stirred) posted(t *rapid.T) {
	g := s.g
	rows, queues, mean := append([]row(nil), g.rows...), append([]queued(nil), g.queues...), g.meanRate()
	for _, w := range g.workers {
		w.post()
		for class := range w.backlog {
			w.postQueue(class)
		}
	}
	g.rated = false
	if !slices.Equal(rows, g.rows) || !slices.Equal(queues, g.queues) || mean != g.meanRate() {
		t.Fatalf("the rows say %+v, mean rate %v; the accounts %+v, %v", rows, mean, g.rows, g.meanRate())
	}
}

// some draws one of the charges, live or not.
func (s *stirred) some(t *rapid.T) *Charge {
	if len(s.live) == 0 {
		t.Skip("nothing was picked")
	}
	return s.live[rapid.IntRange(0, len(s.live)-1).Draw(t, "which")]
}

func (s *stirred) ask(t *rapid.T) *Ask {
	a := &Ask{Prompt: rapid.Int64Range(1, 12_000).Draw(t, "prompt"), Expect: rapid.Int64Range(0, 2000).Draw(t, "expect"), Behind: rapid.IntRange(0, 9).Draw(t, "behind"), Now: s.now}
	a.Force = rapid.IntRange(0, 9).Draw(t, "force") == 0
	a.Eager = rapid.Bool().Draw(t, "eager")
	a.AnyLength = rapid.IntRange(0, 4).Draw(t, "any length") == 0
	if rapid.Bool().Draw(t, "hits") {
		a.Hits = rapid.SliceOfN(rapid.Int32Range(0, 14_000), len(s.g.workers), len(s.g.workers)).Draw(t, "hit")
		family := rapid.Uint64Range(1, 2).Draw(t, "family")
		for i := range rapid.Uint64Range(0, 30).Draw(t, "chunks") {
			a.Chunks = append(a.Chunks, family<<32+i<<4)
		}
		a.ChunkTokens = 250
	}
	if rapid.IntRange(0, 4).Draw(t, "again") == 0 && len(s.live) > 0 {
		a.Tried = append(a.Tried, s.some(t).Try())
	}
	if rapid.IntRange(0, 9).Draw(t, "sticky") == 0 {
		a.Prefer = s.ws[0]
	}
	if rapid.IntRange(0, 4).Draw(t, "trial") == 0 {
		a.Spare = s.ws[len(s.ws)-1]
	}
	return a
}

// worker lets something happen to one of the workers.
func (s *stirred) worker(t *rapid.T) {
	l, now := s.l, s.now
	w := s.ws[rapid.IntRange(0, len(s.ws)-1).Draw(t, "worker")]
	generation := l.Account(w, now).Generation
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0:
		l.SetWorker(w, generation+1, rapid.Bool().Draw(t, "ready"), rapid.SampledFrom([]int64{0, 50_000}).Draw(t, "capacity"), now)
	case 1:
		l.SetWorker(w, generation, rapid.Bool().Draw(t, "ready"), 0, now)
	case 2:
		l.SetElsewhere(w, generation, Elsewhere{
			KV: rapid.Int64Range(0, 40_000).Draw(t, "kv"), Prefill: rapid.Int64Range(0, 9000).Draw(t, "prefill"),
			Resident: rapid.Int64Range(0, 30_000).Draw(t, "resident"), InFlight: rapid.IntRange(0, 9).Draw(t, "in flight"),
		})
	case 3:
		l.SetRates(w, Rates{Prefill: rapid.Float64Range(0, 9000).Draw(t, "rate"), Limit: rapid.IntRange(0, 4).Draw(t, "limit")})
	case 4:
		l.Eject(w, "no_progress", now)
	case 5:
		l.Recover(w, now)
	case 6:
		l.Counted(w, generation, Measured{Believed: rapid.Int64Range(0, 9000).Draw(t, "believed"), Cached: rapid.Int64Range(0, 9000).Draw(t, "cached"), Requests: 3})
	case 7:
		l.Report(w, generation, Report{
			At: now - rapid.SampledFrom([]int64{0, 5, 3e9, 11e9, 30e9}).Draw(t, "age"), Used: rapid.Int64Range(-1, 60_000).Draw(t, "used"), Own: -1, Others: -1,
			MaxLen: rapid.SampledFrom([]int64{0, 4000, 8000}).Draw(t, "longest"), HasPrefill: rapid.Bool().Draw(t, "ours"),
			PrefillTokens: rapid.Int64Range(0, 20_000).Draw(t, "prefill"), Running: rapid.IntRange(-1, 5).Draw(t, "running"), Waiting: rapid.IntRange(-1, 2).Draw(t, "waiting"), Progress: -1,
		})
	}
}
