package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"roundhouse/measure/stat"
)

// underUse finds pools that make requests wait while their devices idle.
func (v *evidence) underUse() ([]Finding, string) {
	var found []Finding
	for _, pool := range v.pools {
		idle, looked, evidence := true, false, []Evidence(nil)
		there := filled(nil, len(v.Times))
		queue, prefill := 0.0, 0.0 // seconds
		for i := range v.workers {
			w := &v.workers[i]
			if w.pool != pool || !w.steady {
				continue
			}
			waits, _ := v.waiting(w)
			there = plus(there, waits)
			queue += v.Histogram("vllm:request_queue_time_seconds", w.own()).Sum
			prefill += v.Histogram("vllm:request_prefill_time_seconds", w.own()).Sum
			low, figures, known := v.idles(w)
			idle, looked = idle && low, looked || known
			evidence = append(evidence, figures...)
		}
		if !idle || !looked {
			continue
		}
		door := v.Gauge("roundhouse_queue_requests", Labels{"pool": pool})
		queued := plus(there, door)
		limited := zeroed(v.Grew("roundhouse_refused_total", Labels{"reason": "key_limit"}))
		// Whoever comes during a step waits for its end; that alone holds nobody back.
		waits := share(door, positive) >= 0.9 || share(there, positive) >= 0.9 && queue > 3*prefill
		f := Finding{Object: pool, Evidence: evidence, Helped: "the devices' share of time in use rises, requests waiting fall"}
		switch {
		case waits || limited >= v.t.Finished:
			v.obstacle(&f, waits, limited, queued)
		case v.Span() >= v.t.Idle.For:
			f.Severity, f.Says = Info, "there is little traffic: the workers idle, and nobody waits"
			f.Cause = "fewer requests come than the pool can serve"
			p := v.facts.pool(pool)
			if f.Command = "fewer workers would do"; p.Workers > 1 && !p.Static {
				f.Command = fmt.Sprintf("roundhouse scale %s %d", pool, p.Workers-1)
			}
		default:
			continue
		}
		found = append(found, f)
	}
	return found, ""
}

// idles reports whether a worker has little to do, with the figures that show it.
func (v *evidence) idles(w *worker) (low bool, evidence []Evidence, known bool) {
	running := v.Gauge("vllm:num_requests_running", w.own())
	used := v.Gauge("roundhouse_device_utilization_ratio", w.own())
	if n := median(used); !math.IsNaN(n) {
		return n < v.t.Idle.Device, []Evidence{figure("device in use, "+w.id, used, "%s", percent(n))}, true
	}
	n := median(running)
	seats, _ := v.seats(w)
	return n < v.t.Idle.Running && n < v.t.Idle.Seats*seats, []Evidence{figure("running, "+w.id, running, "%.0f of %.0f", n, seats)}, !math.IsNaN(n)
}

// obstacle says what keeps requests from idle workers.
func (v *evidence) obstacle(f *Finding, waits bool, limited float64, queued []float64) {
	p := v.facts.pool(f.Object)
	f.Severity = Warn
	f.Says = fmt.Sprintf("the workers idle while %.0f requests wait", median(queued))
	f.Evidence = append(f.Evidence, figure("waiting at door and workers", queued, "%.0f", median(queued)))
	switch {
	case limited >= v.t.Finished:
		f.Says = fmt.Sprintf("the workers idle while %.0f requests are turned away for their keys' limits", limited)
		f.Cause = "a key's limits refuse what the workers could serve"
		f.Command = "raise max_concurrent, requests_per_minute or tokens_per_minute of the key; roundhouse events names it"
		for _, k := range v.facts.Keys {
			if k.Concurrent > 0 {
				f.Cause = fmt.Sprintf("the key %q may have %d requests at once", k.Name, k.Concurrent)
				f.Change = &Change{Now: fmt.Sprintf("key %q {\n  max_concurrent = %d\n}", k.Name, k.Concurrent), Proposed: fmt.Sprintf("key %q {\n  max_concurrent = %d\n}", k.Name, 4*k.Concurrent)}
				f.Command = "roundhouse reload"
				break
			}
		}
	case p.number("--max-num-seqs") > 0 && p.number("--max-num-seqs") < v.t.Idle.Running:
		f.Cause = fmt.Sprintf("the engine runs %.0f requests at once at most", p.number("--max-num-seqs"))
		f.Change, f.Command = p.with("--max-num-seqs", "64"), p.apply()
	case p.flag("--enforce-eager") != "":
		f.Cause = "--enforce-eager: each step waits for the processor to launch its kernels"
		f.Change, f.Command = p.with("--enforce-eager", ""), p.apply()
	default:
		f.Confidence, f.Cause = Medium, "something before the device holds them back: look whether one processor core of the worker is always busy"
		f.Command = "top -H -b -n 1 | head -20"
	}
}

// overCapacity finds pools to which more comes than they complete.
func (v *evidence) overCapacity() ([]Finding, string) {
	var found []Finding
	for _, pool := range v.pools {
		queued := v.Gauge("roundhouse_queue_requests", Labels{"pool": pool})
		for i := range v.workers {
			if w := &v.workers[i]; w.pool == pool {
				there, _ := v.waiting(w)
				queued = plus(queued, there)
			}
		}
		x := known(queued)
		if len(x) < 9 {
			continue
		}
		third := len(x) / 3
		// Bursts come and go: of a growing queue even the least of the end is more than
		// the most of the beginning.
		first, last := quantile(x[:third], .9), quantile(x[2*third:], .1)
		_, p := stat.MannKendall(x)
		if p > 0.01 || !(last-first >= v.t.QueueGrowth && last >= 1.5*first) {
			continue
		}
		facts := v.facts.pool(pool)
		ended := zeroed(v.Grew("roundhouse_requests_total", Labels{"pool": pool}))
		f := Finding{
			Severity: Warn, Object: pool,
			Says:     fmt.Sprintf("more requests come than are served: %.0f waited at first, %.0f at the end", first, last),
			Cause:    "the workers together are too slow for what comes",
			Evidence: []Evidence{figure("waiting at door and workers", queued, "%.0f → %.0f", first, last), {Name: "requests ended", Text: fmt.Sprintf("%.2f/s", ended/v.seconds())}},
			Command:  facts.more(),
			Helped:   "requests waiting stay level over five minutes",
		}
		if facts.Workers > 0 && !facts.Static {
			f.Change = &Change{Now: fmt.Sprintf("pool %q {\n  workers = %d\n}", pool, facts.Workers), Proposed: fmt.Sprintf("pool %q {\n  workers = %d\n}", pool, facts.Workers+1)}
		}
		found = append(found, f)
	}
	return found, ""
}

// hangUps finds pools whose clients leave before their answer is whole.
func (v *evidence) hangUps() ([]Finding, string) {
	var found []Finding
	for _, pool := range v.pools {
		all := zeroed(v.Grew("roundhouse_requests_total", Labels{"pool": pool}))
		left := zeroed(v.Grew("roundhouse_hangups_total", Labels{"pool": pool}))
		if all < v.t.Finished || left/all <= v.t.HangUps || left < v.t.Errors {
			continue
		}
		ttft := v.Histogram("roundhouse_ttft_seconds", Labels{"pool": pool})
		waiting := zeroed(v.Grew("roundhouse_hangups_total", Labels{"pool": pool, "phase": "waiting"}))
		f := Finding{
			Severity: Warn, Object: pool, Confidence: Medium,
			Says:     fmt.Sprintf("%s of the requests end because their client leaves", percent(left/all)),
			Cause:    "clients stop reading in the middle of answers: too long, or no more wanted",
			Evidence: []Evidence{{Name: "clients that left", Text: fmt.Sprintf("%.0f of %.0f", left, all)}, {Name: "TTFT, p95", Text: seconds(ttft.Quantile(.95))}},
			Command:  "look at the clients' time limits and max_tokens",
			Helped:   "roundhouse_hangups_total grows by less than a twentieth of the requests",
		}
		if waiting > left/2 {
			f.Cause = "clients lose patience before the first token"
			f.Command = "mend the time to the first token: " + v.facts.pool(pool).more()
		}
		found = append(found, f)
	}
	return found, ""
}

// blind finds workers of which the door does not know how full they are.
func (v *evidence) blind() ([]Finding, string) {
	var found []Finding
	for i := range v.workers {
		w := &v.workers[i]
		age := v.Gauge("roundhouse_worker_report_age_seconds", w.door())
		ready := v.Gauge("roundhouse_worker_state", Labels{"pool": w.pool, "worker": w.name, "state": "ready"})
		f := Finding{Severity: Warn, Object: w.id, Evidence: []Evidence{figure("age of its report", age, "%s", seconds(last(age)))},
			Helped: "roundhouse_worker_report_age_seconds stays below a second"}
		foreign := v.foreign(w)
		switch {
		case last(ready) == 1 && last(age) > v.t.ReportAge:
			f.Says = fmt.Sprintf("the last report of %s is %s old: requests are placed without knowing how full it is", w.id, seconds(last(age)))
			f.Cause = "its /metrics or status stream cannot be reached, or does not say what is looked for"
			f.Command = "ask the worker for /metrics from the door's machine; pool.scrape.names gives other names"
		case w.steady && last(age) <= v.t.ReportAge && v.capacity(w) > 0 && len(known(v.Gauge("roundhouse_worker_kv_tokens", Labels{"pool": w.pool, "worker": w.name, "source": "reported"})[len(v.Times)/2:])) == 0:
			f.Says = fmt.Sprintf("%s answers, and does not say how full its KV cache is: requests are placed by what the door itself has sent", w.id)
			f.Cause = "its metrics have other names than those that are looked for"
			f.Command, f.Helped = "look at the worker's /metrics, and name what it has in pool.scrape.names", `roundhouse_worker_kv_tokens{source="reported"} is there`
		case w.steady && foreign > v.t.ForeignBlind:
			f.Says = fmt.Sprintf("%s of the KV cache belongs to requests that did not come by the door", percent(foreign))
			f.Cause = "somebody else sends to this worker; what they send next, the door cannot foresee"
			f.Evidence = []Evidence{{Name: "foreign tokens", Text: percent(foreign) + " of the cache"}}
			f.Command, f.Helped = "let them ask the door", "foreign tokens go to 0"
		default:
			continue
		}
		found = append(found, f)
	}
	return found, ""
}

// flapping finds workers that start again and again.
func (v *evidence) flapping() ([]Finding, string) {
	var found []Finding
	by := v.Recording
	if v.back != nil {
		by = v.back
	}
	for i := range v.workers {
		w := &v.workers[i]
		n, reasons := 0.0, []string{}
		for _, s := range by.find("roundhouse_worker_starts_total", w.door()) {
			r := s.labels["reason"]
			if !unplanned(r) {
				continue
			}
			grew := 0.0
			for i, g := range by.Growth("roundhouse_worker_starts_total", Labels{"pool": w.pool, "worker": w.name, "reason": r}) {
				if by.Times[len(by.Times)-1].Sub(by.Times[i]) <= time.Hour {
					grew += zeroed(g)
				}
			}
			if grew > 0 {
				n, reasons = n+grew, append(reasons, r)
			}
		}
		listed := 0
		for _, s := range v.facts.Starts {
			if s.Worker == w.id {
				listed++
				if !slices.Contains(reasons, s.Reason) {
					reasons = append(reasons, s.Reason)
				}
			}
		}
		if n = max(n, float64(listed)); n <= float64(v.t.Starts) {
			continue
		}
		found = append(found, Finding{
			Severity: Critical, Object: w.id,
			Says:     fmt.Sprintf("it was started %.0f times in the last hour, which nobody had planned: %s", n, strings.Join(reasons, ", ")),
			Cause:    "the engine ends by itself or hangs; its log says why",
			Evidence: []Evidence{{Name: "unplanned starts", Text: fmt.Sprintf("%.0f", n)}},
			Command:  "roundhouse logs " + w.id + "; roundhouse stop " + w.id + " takes it out until it is mended",
			Helped:   "roundhouse_worker_starts_total stands still",
		})
	}
	return found, ""
}

// unplanned reports whether nobody wanted a start for this reason.
func unplanned(reason string) bool {
	return slices.Contains([]string{"crashed", "hung", "does_not_answer"}, reason)
}

// plus is the sum of two courses, moment by moment.
func plus(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		if math.IsNaN(out[i]) {
			out[i] = b[i]
		} else if !math.IsNaN(b[i]) {
			out[i] += b[i]
		}
	}
	return out
}

// last is the last value that was said, NaN of none.
func last(values []float64) float64 {
	if x := known(values); len(x) > 0 {
		return x[len(x)-1]
	}
	return math.NaN()
}
