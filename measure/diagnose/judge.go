package diagnose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"roundhouse/measure/stat"
)

// rule is one thing to look for. It returns what it found, or why it cannot look.
type rule struct {
	name string
	span time.Duration // of recording that it needs; 0: any
	look func(*evidence) ([]Finding, string)
}

// rules are all there are, causes before their effects.
func rules(t *Thresholds) []rule {
	return []rule{
		{"blind", 0, (*evidence).blind},
		{"flapping", 0, (*evidence).flapping},
		{"kv-leak", t.IdleKV, (*evidence).kvLeak},
		{"memory-leak", t.Memory.Over, (*evidence).memoryLeak},
		{"kv-thrashing", 0, (*evidence).thrashing},
		{"slow-worker", 0, (*evidence).slowWorker},
		{"worker-errors", 0, (*evidence).workerErrors},
		{"over-capacity", t.QueueOver, (*evidence).overCapacity},
		{"prefill-starvation", 0, (*evidence).starvation},
		{"decode-starvation", 0, (*evidence).stutter},
		{"long-requests", 0, (*evidence).longRequests},
		{"under-use", 0, (*evidence).underUse},
		{"prefix-misses", t.HitsOver, (*evidence).prefixMisses},
		{"wrong-prediction", 0, (*evidence).prediction},
		{"clients-leave", 0, (*evidence).hangUps},
	}
}

// RuleNames are the names of all rules.
func RuleNames() (names []string) {
	for _, r := range rules(&Defaults) {
		names = append(names, r.name)
	}
	return names
}

// Judge asks every rule about the last minutes, and those that look further back about
// a long recording, whose moments may lie wider apart; nil is the same one. Findings of
// others stand beside those of the rules, if no rule says the like of the same object.
func Judge(r, long *Recording, f *Facts, t *Thresholds, others ...Finding) Report {
	v := &evidence{Recording: r, facts: f, t: t}
	v.meet()
	back := v
	if long != nil {
		back = &evidence{Recording: long, facts: f, t: t}
		back.meet()
		v.back = long
	}
	out := Report{Schema: 1, Samples: len(r.Times), Workers: []string{}, Findings: []Finding{}, Unjudged: []Unjudged{}}
	for _, w := range v.workers {
		out.Workers = append(out.Workers, w.id)
	}
	if len(r.Times) > 0 {
		out.From, out.To = r.Times[0], r.Times[len(r.Times)-1]
	}
	for _, rule := range rules(t) {
		why, by := "", v
		if rule.span >= time.Hour {
			by = back
		}
		var found []Finding
		switch {
		case len(by.Times) < 2:
			why = "rates need two samples, and there are fewer"
		case by.Span() < rule.span:
			why = fmt.Sprintf("it needs %s of samples, and there are %s", words(rule.span), words(by.Span()))
		default:
			found, why = rule.look(by)
		}
		if why != "" {
			out.Unjudged = append(out.Unjudged, Unjudged{rule.name, why})
		}
		for _, x := range found {
			x.Rule = rule.name
			if x.Since.IsZero() {
				x.Since = out.From
			}
			if x.Confidence == "" {
				x.Confidence = High
			}
			out.Findings = append(out.Findings, x)
		}
	}
	for _, x := range others {
		told := func(f Finding) bool { return f.Object == x.Object && f.Severity.AtLeast(x.Severity) }
		if !slices.ContainsFunc(out.Findings, told) {
			x.Evidence = slices.Concat([]Evidence{}, x.Evidence)
			out.Findings = append(out.Findings, x)
		}
	}
	out.explain()
	out.order()
	return out
}

// words are a time as people say it.
func words(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// evidence is a recording as rules look at it.
type evidence struct {
	*Recording
	facts   *Facts
	t       *Thresholds
	back    *Recording // the long recording, if there is one
	workers []worker
	pools   []string
}

// worker is one of the recording.
type worker struct {
	id, pool, name string
	steady         bool // ready all the time, and the same process
}

// of picks the series of a worker: the doors' have two labels, its own one.
func (w *worker) door() Labels { return Labels{"pool": w.pool, "worker": w.name} }
func (w *worker) own() Labels  { return Labels{"worker": w.id} }

// meet finds the workers and pools.
func (v *evidence) meet() {
	seen := map[string]worker{}
	for _, s := range v.byName["roundhouse_worker_state"] {
		w := worker{pool: s.labels["pool"], name: s.labels["worker"]}
		w.id = w.pool + "/" + w.name
		seen[w.id] = w
	}
	for _, s := range v.byName["vllm:num_requests_running"] {
		id := s.labels["worker"]
		pool, name, _ := strings.Cut(id, "/")
		if _, known := seen[id]; !known && id != "" {
			seen[id] = worker{id: id, pool: pool, name: name}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		w := seen[id]
		w.steady = v.steady(&w)
		v.workers = append(v.workers, w)
		if !slices.Contains(v.pools, w.pool) {
			v.pools = append(v.pools, w.pool)
		}
	}
}

// steady reports whether a worker was ready throughout and has not begun anew.
func (v *evidence) steady(w *worker) bool {
	ready := Labels{"pool": w.pool, "worker": w.name, "state": "ready"}
	for _, on := range known(v.Gauge("roundhouse_worker_state", ready)) {
		if on != 1 {
			return false
		}
	}
	for _, s := range v.find("vllm:generation_tokens_total", w.own()) {
		before := 0.0
		for _, n := range known(s.values) {
			if n < before {
				return false
			}
			before = n
		}
	}
	return true
}

// each calls look for every steady worker.
func (v *evidence) each(look func(*worker) *Finding) (found []Finding) {
	for i := range v.workers {
		if w := &v.workers[i]; w.steady {
			if f := look(w); f != nil {
				f.Object = w.id
				found = append(found, *f)
			}
		}
	}
	return found
}

// finished is how many answers a worker has ended.
func (v *evidence) finished(w *worker) float64 { return v.Grew("vllm:request_success_total", w.own()) }

// seconds is the length of the recording.
func (v *evidence) seconds() float64 { return v.Span().Seconds() }

// capacity is what a worker's KV cache holds, in tokens; NaN: unknown.
func (v *evidence) capacity(w *worker) float64 {
	return median(v.Gauge("roundhouse_worker_kv_capacity_tokens", w.door()))
}

// foreign is the share of a worker's KV cache that others than the doors hold.
func (v *evidence) foreign(w *worker) float64 {
	tokens := v.Gauge("roundhouse_worker_kv_tokens", Labels{"pool": w.pool, "worker": w.name, "source": "foreign"})
	return median(tokens) / v.capacity(w)
}

// seats is --max-num-seqs of a worker's pool; assumed means that it is vLLM's default.
func (v *evidence) seats(w *worker) (n float64, assumed bool) {
	if n := v.facts.pool(w.pool).number("--max-num-seqs"); n > 0 {
		return n, false
	}
	return 256, true
}

// budget is --max-num-batched-tokens of a worker's pool; assumed means that it is
// vLLM's default.
func (v *evidence) budget(w *worker) (n float64, assumed bool) {
	if n := v.facts.pool(w.pool).number("--max-num-batched-tokens"); n > 0 {
		return n, false
	}
	return 2048, true
}

// waiting is how many requests wait at a worker and, told by its pool, at the door.
func (v *evidence) waiting(w *worker) (there, door []float64) {
	return v.Gauge("vllm:num_requests_waiting", w.own()), v.Gauge("roundhouse_queue_requests", Labels{"pool": w.pool})
}

// share is the share of the values that were said for which ok holds; 0 of none.
func share(values []float64, ok func(float64) bool) float64 {
	n, all := 0.0, 0.0
	for _, x := range known(values) {
		all++
		if ok(x) {
			n++
		}
	}
	if all == 0 {
		return 0
	}
	return n / all
}

func positive(x float64) bool { return x > 0 }

// quantile is the q-quantile of the values that were said, NaN of none.
func quantile(values []float64, q float64) float64 {
	s := known(values)
	if len(s) == 0 {
		return math.NaN()
	}
	slices.Sort(s)
	return stat.Percentile(s, 100*q)
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// figure is a piece of evidence with its course.
func figure(name string, values []float64, format string, args ...any) Evidence {
	said := known(values)
	for len(said) > 120 { // enough for a line on a page
		thin := said[:0]
		for i := 0; i < len(said); i += 2 {
			thin = append(thin, said[i])
		}
		said = thin
	}
	return Evidence{Name: name, Text: fmt.Sprintf(format, args...), Values: said}
}
