package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// thrashing finds workers that throw requests out of a full KV cache and compute
// them again.
func (v *evidence) thrashing() ([]Finding, string) {
	return v.each(func(w *worker) *Finding {
		usage := v.Gauge("vllm:kv_cache_usage_perc", w.own())
		preempted, finished := v.Grew("vllm:num_preemptions_total", w.own()), v.finished(w)
		// A preemption leaves room for a moment, so that the median may lie lower.
		full := quantile(usage, 0.75)
		each := preempted / math.Max(1, finished)
		if !(full >= v.t.KVFull) || !(max(preempted, finished) >= v.t.Finished) || !(each >= v.t.Pressure) {
			return nil
		}
		f := &Finding{Severity: Warn, Helped: "preemptions for each answer fall below " + number(v.t.Pressure) + "; tokens a second rise"}
		word := "pressure on"
		if each >= v.t.Thrashing {
			f.Severity, word = Critical, "thrashing of"
		}
		f.Says = fmt.Sprintf("%s the KV cache: %s of it is in use; requests were thrown out and computed again %.0f times while %.0f ended", word, percent(full), preempted, zeroed(finished))
		running := v.Gauge("vllm:num_requests_running", w.own())
		f.Evidence = []Evidence{
			figure("KV cache in use", usage, "%s in a quarter of the samples", percent(full)),
			figure("preemptions", v.Growth("vllm:num_preemptions_total", w.own()), "%.0f", preempted),
			figure("running", running, "%.0f", median(running)),
		}
		v.roomier(w, f, median(running), median(usage))
		return f
	}), ""
}

// roomier proposes how fewer requests are thrown out of a cache.
func (v *evidence) roomier(w *worker, f *Finding, running, usage float64) {
	p := v.facts.pool(w.pool)
	if foreign := v.foreign(w); foreign > v.t.Foreign {
		f.Evidence = append(f.Evidence, Evidence{Name: "foreign tokens", Text: percent(foreign) + " of the cache"})
		f.Cause = "others than the door send to this worker, and the door cannot hold them back"
		f.Command, f.Helped = "let them ask the door; roundhouse ps shows foreign tokens", "foreign tokens go to 0"
		return
	}
	if slices.Contains(p.ByHand, w.name) {
		f.Cause = "kv_tokens is set by hand, and the door sends as much as it says"
		f.Change = &Change{Now: fmt.Sprintf("worker %q {\n  kv_tokens = …\n}", w.name), Proposed: fmt.Sprintf("worker %q {\n}", w.name)}
		f.Command = "roundhouse reload"
		return
	}
	f.Cause = "more requests run at once than their tokens have room for"
	capacity := v.capacity(w)
	length := v.Histogram("vllm:request_prompt_tokens", w.own()).Quantile(.75) + v.Histogram("vllm:request_generation_tokens", w.own()).Quantile(.75)
	if live := usage * capacity / running; math.IsNaN(length) || live > length {
		length = live // those that never end are in no histogram of ended ones
	}
	seats := math.Floor(0.85 * capacity / length)
	if math.IsNaN(seats) || math.IsInf(seats, 0) {
		f.Confidence, f.Command = Medium, p.more()
		return
	}
	seats = math.Max(1, math.Min(seats, running-1))
	f.Evidence = append(f.Evidence, Evidence{Name: "tokens of a request", Text: fmt.Sprintf("%.0f of %.0f that fit", length, capacity)})
	f.Change = p.with("--max-num-seqs", strconv.Itoa(int(seats)))
	f.Command = p.apply() + "; or more room: " + p.more() + ", or --kv-cache-dtype fp8"
}

// kvLeak finds workers that hold KV while nobody asks them.
func (v *evidence) kvLeak() ([]Finding, string) {
	return v.each(func(w *worker) *Finding {
		usage := v.Gauge("vllm:kv_cache_usage_perc", w.own())
		busy := [][]float64{v.Gauge("vllm:num_requests_running", w.own()), v.Gauge("vllm:num_requests_waiting", w.own()), v.Gauge("roundhouse_in_flight_requests", w.door())}
		since := -1 // the moment from which on it was idle and yet held KV
		for i := range v.Times {
			idle := !math.IsNaN(busy[0][i])
			for _, b := range busy {
				idle = idle && zeroed(b[i]) == 0
			}
			if !idle || !(usage[i] > 0) {
				since = -1
			} else if since < 0 {
				since = i
			}
		}
		if since < 0 || v.Times[len(v.Times)-1].Sub(v.Times[since]) < v.t.IdleKV {
			return nil
		}
		last := usage[len(usage)-1]
		return &Finding{
			Severity: Warn, Since: v.Times[since],
			Says:     fmt.Sprintf("%s of the KV cache is held while no request runs or waits", percent(last)),
			Cause:    "the engine did not give back what requests held that have ended, or whose clients have left",
			Evidence: []Evidence{figure("KV cache in use", usage, "%s", percent(last)), figure("running", busy[0], "0")},
			Command:  "roundhouse rotate " + w.id,
			Change:   v.trigger(w, "schedule = \"0 3 * * *\"", "a turn each night until the engine is mended"),
			Helped:   "the share in use is 0 when nobody asks",
		}
	}), ""
}

// trigger is the change that lets a pool's rotation mend what comes back.
func (v *evidence) trigger(w *worker, setting, why string) *Change {
	return &Change{Now: fmt.Sprintf("pool %q {\n}", w.pool), Proposed: fmt.Sprintf("pool %q {\n  rotation {\n    %s # %s\n  }\n}", w.pool, setting, why)}
}

// prefixMisses finds pools whose prompts are hardly ever found in a cache.
func (v *evidence) prefixMisses() ([]Finding, string) {
	var found []Finding
	for _, pool := range v.pools {
		p := v.facts.pool(pool)
		queries, hits, rate, prompts := 0.0, 0.0, 0.0, 0.0
		var usage []float64
		for i := range v.workers {
			if w := &v.workers[i]; w.pool == pool && w.steady {
				queries += zeroed(v.Grew("vllm:prefix_cache_queries_total", w.own()))
				hits += zeroed(v.Grew("vllm:prefix_cache_hits_total", w.own()))
				prompts += zeroed(v.Grew("vllm:prompt_tokens_total", w.own()))
				usage = append(usage, v.Gauge("vllm:kv_cache_usage_perc", w.own())...)
			}
		}
		if queries == 0 && p.flag("--no-enable-prefix-caching") != "" {
			queries = prompts // an engine without a cache looks nothing up
		}
		rate = queries / v.seconds()
		if rate < v.t.HitsRate || hits/queries >= v.t.FewHits {
			continue
		}
		f := Finding{
			Severity: Info, Object: pool,
			Says:     fmt.Sprintf("of %.0f prompt tokens a second %s were found in a cache", rate, percent(hits/queries)),
			Evidence: []Evidence{{Name: "tokens looked up", Text: number(math.Round(queries))}, {Name: "tokens found", Text: number(math.Round(hits))}},
			Helped:   "vllm:prefix_cache_hits_total ÷ vllm:prefix_cache_queries_total rises, TTFT falls",
		}
		switch {
		case p.flag("--no-enable-prefix-caching") != "":
			f.Cause = "prefix caching is switched off"
			f.Change = p.with("--no-enable-prefix-caching", "")
			f.Command = p.apply()
		case median(usage) >= 0.9:
			f.Confidence, f.Cause = Medium, "the caches are full: a prefix is evicted before it comes again"
			f.Command = p.more()
		case p.Policy != "" && p.Policy != "least_kv" && p.Policy != "fastest" && p.Sticky == "":
			f.Confidence, f.Cause = Medium, "the policy "+p.Policy+" sends equal prompts to different workers"
			f.Change = &Change{Now: fmt.Sprintf("pool %q {\n  policy = %q\n}", pool, p.Policy), Proposed: fmt.Sprintf("pool %q {\n  policy = \"least_kv\"\n}", pool)}
			f.Command = "roundhouse reload"
		default:
			f.Confidence, f.Cause = Medium, "prompts differ from their beginning on: a time, a name or an id stands in front of what they share"
			f.Command = "put what changes behind what stays, in the clients' prompts"
		}
		found = append(found, f)
	}
	return found, ""
}
