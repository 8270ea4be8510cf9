package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is how the house does: the severity of its worst finding.
type Verdict struct {
	Severity Severity  `json:"level"`
	Since    time.Time `json:"since"`
	Sentence string    `json:"sentence"`
	Findings []Finding `json:"findings"` // the worst first
}

// Finding is one thing that is not as it should be.
type Finding struct {
	Code     string    `json:"code"`
	Severity Severity  `json:"level"`
	Since    time.Time `json:"since"`
	Pool     *string   `json:"pool"`
	Worker   *string   `json:"worker"` // pool/name
	Sentence string    `json:"sentence"`
	Actions  []string  `json:"actions"` // verbs, the best first
}

// mostFindings bounds a verdict.
const mostFindings = 100

// rolledBack is how long a rotation that was rolled back is told.
const rolledBack = 24 * time.Hour

// Watch remembers between two looks when something began.
type Watch struct {
	since    map[string]time.Time // by finding: since when it holds without a break
	severity Severity
	from     time.Time // since when there is this severity
}

// Judge looks at the facts.
func (w *Watch) Judge(f *Facts) Verdict {
	l := look{f: f, now: map[string]time.Time{}, before: w.since, speeds: speeds(f)}
	l.doors()
	for i := range f.Pools {
		l.pool(&f.Pools[i])
	}
	for i := range f.Workers {
		l.worker(&f.Workers[i])
	}
	w.since = l.now
	slices.SortStableFunc(l.found, func(a, b Finding) int { return a.Severity.rank() - b.Severity.rank() })
	v := Verdict{Severity: Well, Findings: l.found}
	if len(l.found) > 0 {
		v.Severity = l.found[0].Severity
	}
	if v.Severity != w.severity {
		w.severity, w.from = v.Severity, f.At
		if len(l.found) > 0 && l.found[0].Since.Before(f.At) {
			w.from = l.found[0].Since
		}
	}
	v.Since, v.Sentence = w.from, sentence(f, v.Findings)
	if len(v.Findings) > mostFindings {
		v.Findings = v.Findings[:mostFindings]
	}
	if v.Findings == nil {
		v.Findings = []Finding{}
	}
	return v
}

// sentence is the verdict in words: its worst finding, or that all is well.
func sentence(f *Facts, found []Finding) string {
	switch n := len(found); {
	case n == 1:
		return found[0].Sentence
	case n > 1:
		return fmt.Sprintf("%s; and %d more", found[0].Sentence, n-1)
	case len(f.Workers) == 0:
		return "no worker is configured"
	}
	ready := 0
	for _, p := range f.Pools {
		ready += p.Ready
	}
	return fmt.Sprintf("all is well: %s", many(ready, "worker serves", "workers serve"))
}

// look is one look at the facts.
type look struct {
	f           *Facts
	found       []Finding
	now, before map[string]time.Time
	speeds      map[string]float64 // the median speed of each pool
}

// add adds a finding that holds now, and is told once it has held for so long.
func (l *look) add(x Finding, after time.Duration) {
	key := x.Code
	for _, part := range []*string{x.Pool, x.Worker} {
		if part != nil {
			key += "\x00" + *part
		}
	}
	began, ok := l.before[key]
	if !ok {
		began = l.f.At
		if !x.Since.IsZero() && x.Since.Before(began) {
			began = x.Since
		}
	}
	l.now[key] = began
	if l.f.At.Sub(began) < after {
		return
	}
	x.Since = began
	if x.Actions == nil {
		x.Actions = []string{}
	}
	l.found = append(l.found, x)
}

func (l *look) doors() {
	silent, last := 0, Door{}
	for _, d := range l.f.Doors {
		if d.Silent != "" {
			silent, last = silent+1, d
		}
	}
	switch {
	case len(l.f.Doors) > 0 && silent == len(l.f.Doors):
		l.add(Finding{Code: "door_silent", Severity: Down, Sentence: "no door answers: " + last.Silent, Actions: []string{"log"}}, 0)
	case silent > 0:
		l.add(Finding{Code: "door_silent", Severity: AtRisk, Sentence: fmt.Sprintf("%d of %d doors do not answer: %s: %s", silent, len(l.f.Doors), last.ID, last.Silent)}, 0)
	}
	if l.f.Journal != "" {
		l.add(Finding{Code: "journal", Severity: AtRisk, Sentence: "the supervisor cannot write its journal: " + l.f.Journal + "; a restart of it would forget what it does now"}, 0)
	}
}

func (l *look) pool(p *Pool) {
	name := &p.Name
	if p.Desired > 0 && p.Ready == 0 {
		text := fmt.Sprintf("pool %s has no ready worker", p.Name)
		if why := l.states(p.Name); why != "" {
			text += ": " + why
		}
		l.add(Finding{Code: "no_worker", Severity: Down, Pool: name, Sentence: text, Actions: []string{"log"}}, 0)
	}
	if t := Of(FailedShare); over(p.FailedShare, t) {
		l.add(Finding{Code: t.Code, Severity: t.Severity, Pool: name, Sentence: fmt.Sprintf("%s of the requests to pool %s failed within 5 minutes", percent(*p.FailedShare), p.Name), Actions: []string{"log"}}, 0)
	}
	if t := Of(Refusals); over(p.Refused, t) {
		l.add(Finding{Code: t.Code, Severity: t.Severity, Pool: name, Sentence: fmt.Sprintf("pool %s turns %.2g requests a second away", p.Name, *p.Refused), Actions: []string{"scale"}}, 0)
	}
	if t := Of(TTFT); over(p.TTFT, t) {
		l.add(Finding{Code: t.Code, Severity: t.Severity, Pool: name, Sentence: fmt.Sprintf("one request in twenty to pool %s waits %.1f s or longer for its first token", p.Name, *p.TTFT), Actions: []string{"scale"}}, 0)
	}
	if t := Of(KVPromised); over(p.KVPromised, t) {
		l.add(Finding{Code: t.Code, Severity: t.Severity, Pool: name, Sentence: fmt.Sprintf("the KV cache of pool %s is promised to %s: requests will soon wait", p.Name, percent(*p.KVPromised)), Actions: []string{"scale"}}, t.For)
	}
	if t := Of(QueueGrows); p.WaitingBefore != nil && float64(p.Waiting) > t.Value && p.Waiting > *p.WaitingBefore {
		l.add(Finding{Code: t.Code, Severity: t.Severity, Pool: name, Sentence: fmt.Sprintf("%d requests wait at the door of pool %s, %d more than five minutes ago", p.Waiting, p.Name, p.Waiting-*p.WaitingBefore), Actions: []string{"scale"}}, t.For)
	}
	l.rotation(p)
}

func (l *look) rotation(p *Pool) {
	name, r := &p.Name, &p.Rotation
	because := ""
	if r.Reason != "" {
		because = ": " + r.Reason
	}
	switch r.State {
	case "halted":
		l.add(Finding{Code: "rotation_halted", Severity: AtRisk, Pool: name, Since: r.Ended, Sentence: fmt.Sprintf("the rotation of pool %s is halted%s", p.Name, because), Actions: []string{"continue", "abort", "log"}}, 0)
	case "rolled_back":
		if l.f.At.Sub(r.Ended) < rolledBack {
			l.add(Finding{Code: "rotation_rolled_back", Severity: AtRisk, Pool: name, Since: r.Ended, Sentence: fmt.Sprintf("the rotation of pool %s was rolled back%s", p.Name, because), Actions: []string{"log"}}, 0)
		}
	case "running":
		x := Finding{Code: "turn", Severity: Changing, Pool: name, Sentence: fmt.Sprintf("pool %s rotates: %d of %d done", p.Name, r.Done, r.Of), Actions: []string{"abort"}}
		if r.Current != "" {
			x.Sentence += ", now " + r.Current
		}
		l.add(x, 0)
	}
}

// states counts the states of a pool's workers, for the sentence that none is ready.
func (l *look) states(pool string) string {
	var order []string
	n := map[string]int{}
	for _, w := range l.f.Workers {
		if w.Pool == pool {
			if n[w.State]++; n[w.State] == 1 {
				order = append(order, w.State)
			}
		}
	}
	for i, state := range order {
		order[i] = fmt.Sprintf("%d %s", n[state], state)
	}
	return strings.Join(order, ", ")
}

func (l *look) worker(w *Worker) {
	pool, id := &w.Pool, &w.ID
	because := ""
	if w.Reason != "" {
		because = ": " + w.Reason
	}
	switch w.State {
	case "failed":
		text := fmt.Sprintf("%s has failed%s", w.ID, because)
		if w.NextTry != nil {
			text += fmt.Sprintf("; it is started again at %s", w.NextTry.UTC().Format("15:04:05 UTC"))
		}
		l.add(Finding{Code: "worker_failed", Severity: AtRisk, Pool: pool, Worker: id, Since: w.Since, Sentence: text, Actions: []string{"log", "start", "stop"}}, 0)
	case "quarantined":
		l.add(Finding{Code: "worker_failed", Severity: AtRisk, Pool: pool, Worker: id, Since: w.Since, Sentence: fmt.Sprintf("%s is in quarantine%s", w.ID, because), Actions: []string{"log", "start"}}, 0)
	case "ejected", "unreachable":
		l.add(Finding{Code: "worker_failed", Severity: AtRisk, Pool: pool, Worker: id, Since: w.Since, Sentence: fmt.Sprintf("the door sends nothing to %s%s", w.ID, because), Actions: []string{"log", "rotate", "drain"}}, 0)
	case "starting", "warming":
		l.add(Finding{Code: "turn", Severity: Changing, Pool: pool, Worker: id, Since: w.Since, Sentence: fmt.Sprintf("%s is %s%s", w.ID, w.State, because), Actions: []string{"log"}}, 0)
	case "draining":
		l.add(Finding{Code: "turn", Severity: Changing, Pool: pool, Worker: id, Since: w.Since, Sentence: fmt.Sprintf("%s drains, %s left%s", w.ID, many(w.Streams, "request", "requests"), because), Actions: []string{"undrain"}}, 0)
	case "ready":
		l.serving(w)
	}
}

// serving looks at a worker that is in service.
func (l *look) serving(w *Worker) {
	pool, id := &w.Pool, &w.ID
	if t := Of(ReportAge); over(w.ReportAge, t) {
		l.add(Finding{Code: t.Code, Severity: t.Severity, Pool: pool, Worker: id, Sentence: fmt.Sprintf("%s has not reported for %.0f s: the door goes by its own accounts", w.ID, *w.ReportAge), Actions: []string{"log", "rotate"}}, t.For)
	}
	if t := Of(SlowWorker); w.Speed != nil && *w.Speed > 0 && *w.Speed < (1-t.Value)*l.speeds[w.Pool] {
		l.add(Finding{Code: t.Code, Severity: t.Severity, Pool: pool, Worker: id, Sentence: fmt.Sprintf("the streams of %s get %.3g tokens a second, those of its pool %.3g", w.ID, *w.Speed, l.speeds[w.Pool]), Actions: []string{"rotate", "drain"}}, t.For)
	}
}

// speeds are the median speeds of pools of three workers at least that have something
// to do: of two, who could say which is slow.
func speeds(f *Facts) map[string]float64 {
	all := map[string][]float64{}
	for _, w := range f.Workers {
		if w.State == "ready" && w.Speed != nil && *w.Speed > 0 && w.Streams > 0 {
			all[w.Pool] = append(all[w.Pool], *w.Speed)
		}
	}
	out := map[string]float64{}
	for pool, list := range all {
		if len(list) >= 3 {
			slices.Sort(list)
			out[pool] = list[len(list)/2]
		}
	}
	return out
}

func over(v *float64, t Threshold) bool { return v != nil && *v > t.Value }

func percent(share float64) string {
	if share < 0.1 {
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
