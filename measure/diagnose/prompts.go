package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// starvation finds workers whose decodes leave no room for prompts: requests wait
// for their first token while those that run get theirs as ever.
func (v *evidence) starvation() ([]Finding, string) {
	return v.each(func(w *worker) *Finding {
		there, _ := v.waiting(w)
		said := v.Grew("vllm:generation_tokens_total", w.own())
		// All prompts together, by the engine's own clock: what an engine spends on prompts.
		prefill := v.Histogram("vllm:request_prefill_time_seconds", w.own())
		queue := v.Histogram("vllm:request_queue_time_seconds", w.own())
		if share(there, positive) < 0.9 || !(said > 0) || prefill.Sum >= v.t.PromptTime*v.seconds() {
			return nil
		}
		if prefill.N > 0 && queue.Mean() < 3*prefill.Mean() {
			return nil // they wait no longer than their prompts take
		}
		running := v.Gauge("vllm:num_requests_running", w.own())
		seats, assumed := v.seats(w)
		f := &Finding{
			Severity: Warn,
			Says:     fmt.Sprintf("%.0f requests wait for their first token throughout, and %s of the time goes into prompts", median(there), percent(prefill.Sum/v.seconds())),
			Evidence: []Evidence{
				figure("waiting at the worker", there, "%.0f", median(there)), figure("running", running, "%.0f", median(running)),
				figure("tokens generated", v.Growth("vllm:generation_tokens_total", w.own()), "%.0f/s", said/v.seconds()),
				{Name: "wait of those that began", Text: seconds(queue.Mean())},
			},
			Helped: "requests waiting at the worker go to 0; TTFT falls to the time of a prompt",
		}
		v.opened(w, f, median(running), seats, assumed)
		return f
	}), ""
}

// opened proposes how prompts get room.
func (v *evidence) opened(w *worker, f *Finding, running, seats float64, assumed bool) {
	p := v.facts.pool(w.pool)
	usage := quantile(v.Gauge("vllm:kv_cache_usage_perc", w.own()), 0.75)
	budget, _ := v.budget(w)
	tokens := v.Histogram("vllm:iteration_tokens_total", w.own()).Quantile(0.5)
	switch {
	case !assumed && running >= v.t.SeatsFull*seats && usage < 0.8:
		f.Cause = fmt.Sprintf("all %.0f seats are taken, and %s of the KV cache is in use", seats, percent(usage))
		more := math.Floor(seats * math.Min(4, 0.85/math.Max(usage, 0.01)))
		f.Change = p.with("--max-num-seqs", strconv.Itoa(int(math.Max(seats+1, more))))
		f.Command = p.apply()
	case !assumed && running >= v.t.SeatsFull*seats:
		f.Cause = fmt.Sprintf("all %.0f seats are taken, and the KV cache has no room for more", seats)
		f.Command = p.more()
	case running >= 0.9*budget || tokens >= v.t.BudgetFull*budget:
		f.Cause = fmt.Sprintf("the decodes take the %.0f tokens of a step", budget)
		f.Change = p.with("--max-num-batched-tokens", strconv.Itoa(int(2*budget)))
		f.Command = p.apply()
	case usage >= v.t.KVFull:
		f.Cause = "the KV cache is full: nobody is admitted"
		f.Command = p.more()
	default:
		f.Confidence, f.Cause = Medium, fmt.Sprintf("the engine admits nobody beside the %.0f that run", running)
		f.Command = p.more()
	}
}

// stutter finds workers whose prompts hold up the tokens of others.
func (v *evidence) stutter() ([]Finding, string) {
	return v.each(func(w *worker) *Finding {
		gaps := v.Histogram("vllm:inter_token_latency_seconds", w.own())
		steps := v.Histogram("vllm:iteration_tokens_total", w.own())
		budget, assumed := v.budget(w)
		p50, p99, full := gaps.Quantile(.5), gaps.Quantile(.99), 1-steps.below(v.t.BudgetFull*budget)
		if gaps.N < 10*v.t.Finished || !(p99 > v.t.SlowGap*p50) || !(p99-p50 > v.t.LongFloor) || !(full >= 0.05) || !(gaps.Mean() > v.t.SlowMean*p50) {
			return nil
		}
		p := v.facts.pool(w.pool)
		f := &Finding{
			Severity: Warn,
			Says:     fmt.Sprintf("the usual token comes after %s, one in a hundred after %s: streams are %.1f times as slow as they could be", seconds(p50), seconds(p99), gaps.Mean()/p50),
			Cause:    fmt.Sprintf("steps full of prompt tokens (%s of all steps, up to %.0f tokens) hold up those that generate", percent(full), budget),
			Evidence: []Evidence{{Name: "gap between tokens, p99", Text: seconds(p99)}, {Name: "p50", Text: seconds(p50)}, {Name: "full steps", Text: percent(full)}},
			Change:   p.with("--max-num-batched-tokens", strconv.Itoa(int(budget/2))),
			Command:  p.apply() + "; or --long-prefill-token-threshold on a vLLM",
			Helped:   "the p99 of gaps between tokens falls; TTFT of long prompts rises",
		}
		if assumed {
			f.Confidence = Medium
		}
		return f
	}), ""
}

// longRequests finds pools where a few long prompts make all others wait.
func (v *evidence) longRequests() ([]Finding, string) {
	var found []Finding
	for _, pool := range v.pools {
		prompts := Distribution{}
		for i := range v.workers {
			if w := &v.workers[i]; w.pool == pool {
				prompts = prompts.and(v.Histogram("vllm:request_prompt_tokens", w.own()))
			}
		}
		p50, p99 := prompts.Quantile(.5), prompts.Quantile(.99)
		if prompts.N < v.t.Finished || !(p99 >= v.t.LongPrompt*p50) {
			continue
		}
		// The long ones are few; whoever is above their share in TTFT is a short one.
		long := 1 - prompts.below(v.t.LongPrompt/2*p50)
		ttft := v.Histogram("roundhouse_ttft_seconds", Labels{"pool": pool})
		base, hurt := ttft.Quantile(.25), ttft.Quantile(math.Max(.5, 1-long-.1))
		if long > 0.2 || !(hurt >= v.t.LongTTFT*base) || !(hurt-base >= v.t.LongFloor) {
			continue
		}
		found = append(found, v.crowded(pool, p50, p99, base, hurt))
	}
	return found, ""
}

// crowded is the finding that long prompts hurt the others of a pool.
func (v *evidence) crowded(pool string, p50, p99, base, hurt float64) Finding {
	p := v.facts.pool(pool)
	f := Finding{
		Severity: Warn, Confidence: Medium, Object: pool,
		Says:  fmt.Sprintf("prompts of %.0f tokens among those of %.0f: short ones wait up to %s for their first token instead of %s", p99, p50, seconds(hurt), seconds(base)),
		Cause: "a few long prompts take whole steps of the workers that they run on",
		Evidence: []Evidence{
			{Name: "prompt tokens, p50 and p99", Text: fmt.Sprintf("%.0f and %.0f", p50, p99)},
			{Name: "TTFT, the fast quarter and the slow", Text: seconds(base) + " and " + seconds(hurt)},
		},
		Change:  p.with("--long-prefill-token-threshold", strconv.Itoa(int(math.Max(512, 4*p50)))),
		Command: p.apply() + "; or tokens_per_minute of the key that sends them, or a route of their own",
		Helped:  "TTFT of short prompts falls, and the p95 of all",
	}
	all := slices.Clone(v.facts.Requests)
	slices.SortFunc(all, func(a, b Request) int { return cmp.Compare(b.Prompt, a.Prompt) })
	var names []string
	for _, r := range all {
		if r.Pool == pool && float64(r.Prompt) >= v.t.LongPrompt/2*p50 && len(names) < 10 {
			by := ""
			if r.Key != "" {
				by = " of key " + r.Key
			}
			names = append(names, fmt.Sprintf("%s%s: %d", r.ID, by, r.Prompt))
		}
	}
	if len(names) > 0 {
		f.Evidence = append(f.Evidence, Evidence{Name: "the longest under way", Text: strings.Join(names, ", ")})
	}
	return f
}

// and adds another distribution of the same bounds, or of none.
func (d Distribution) and(o Distribution) Distribution {
	if len(d.Bounds) == 0 {
		return o
	}
	sum := Distribution{Sum: d.Sum + o.Sum, N: d.N + o.N}
	at := map[float64]float64{}
	for i, b := range d.Bounds {
		at[b] += d.Counts[i]
	}
	for i, b := range o.Bounds {
		at[b] += o.Counts[i]
	}
	for b := range at {
		sum.Bounds = append(sum.Bounds, b)
	}
	slices.Sort(sum.Bounds)
	for _, b := range sum.Bounds {
		sum.Counts = append(sum.Counts, at[b])
	}
	return sum
}

// below is the share of what was counted in the buckets up to x.
func (d Distribution) below(x float64) float64 {
	under, all := 0.0, 0.0
	for i, b := range d.Bounds {
		all += d.Counts[i]
		if b <= x {
			under += d.Counts[i]
		}
	}
	return under / all
}
