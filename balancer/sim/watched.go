package sim

import (
	"fmt"
	"slices"
	"strings"

	"roundhouse/balancer/ledger"
)

// watched is what the metrics of a simulated fleet and its door count.
type watched struct {
	door    *tally
	ended   int
	say     func(at float64, page string)
	engines []*tally
}

// Watch has a fleet tell, every so many seconds, what an exposition of its door and
// engines would say. It must be set before Run.
type Watch struct {
	Every float64
	Say   func(at float64, page string)
}

// The door's histograms have bounds of their own.
var doorBounds = map[string][]float64{
	"roundhouse_ttft_seconds":          {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600},
	"roundhouse_ttft_prediction_ratio": {.1, .25, .35, .5, .7, .85, 1, 1.2, 1.4, 2, 3, 4, 10},
}

func newWatched(f *Fleet, say func(float64, string)) *watched {
	w := &watched{door: newTally(), say: say}
	for _, e := range f.engines {
		t := newTally()
		e.counted().tally = t
		w.engines = append(w.engines, t)
	}
	return w
}

// first counts a first token as door and engine do.
func (w *watched) first(j *Job) {
	w.door.observe("roundhouse_ttft_seconds", j.first-j.At)
	w.engines[j.worker].observe("vllm:time_to_first_token_seconds", j.first-j.sent)
	if c, ok := j.state.(*ledger.Charge); ok && c.Predicted() > 0 && max(c.Predicted(), j.first-j.sent) >= 0.1 {
		w.door.observe("roundhouse_ttft_prediction_ratio", (j.first-j.sent)/c.Predicted())
	}
}

// last counts an answer's end.
func (w *watched) last(j *Job) {
	w.ended++
	t := w.engines[j.worker]
	t.ended["length"]++
	t.observe("vllm:request_prompt_tokens", float64(j.Prompt))
	t.observe("vllm:request_generation_tokens", float64(j.out))
	t.observe("vllm:request_queue_time_seconds", j.began-j.sent)
	t.observe("vllm:request_prefill_time_seconds", j.first-j.began)
}

// page is the exposition.
func (w *watched) page(f *Fleet) string {
	var b strings.Builder
	put := func(name, labels string, v float64) { fmt.Fprintf(&b, "%s{%s} %g\n", name, labels, v) }
	held := 0
	for _, h := range f.queued {
		held += len(h)
	}
	put("roundhouse_queue_requests", `pool="w",priority="normal"`, float64(held))
	put("roundhouse_requests_total", `pool="w",outcome="ok"`, float64(w.ended))
	w.door.write(&b, `pool="w"`)
	for i, e := range f.engines {
		g, c := e.gauge(), e.counted()
		own, door := fmt.Sprintf(`worker="w/%d"`, i), fmt.Sprintf(`pool="w",worker="%d"`, i)
		put("roundhouse_worker_state", door+`,state="ready"`, 1)
		put("roundhouse_worker_kv_capacity_tokens", door, float64(f.speeds[i].Capacity))
		put("roundhouse_worker_kv_tokens", door+`,source="reported"`, g.Usage*float64(f.speeds[i].Capacity))
		put("roundhouse_worker_kv_tokens", door+`,source="foreign"`, 0)
		put("roundhouse_worker_report_age_seconds", door, f.age())
		put("roundhouse_in_flight_requests", door, float64(g.Running+g.Waiting))
		put("roundhouse_worker_requests_total", door+`,outcome="served"`, float64(c.tally.ended["length"]))
		put("vllm:num_requests_running", own, float64(g.Running))
		put("vllm:num_requests_waiting", own, float64(g.Waiting))
		put("vllm:kv_cache_usage_perc", own, g.Usage*float64(f.speeds[i].Capacity)/float64(f.speeds[i].Capacity))
		put("vllm:num_preemptions_total", own, float64(c.preempted))
		put("vllm:generation_tokens_total", own, float64(c.said))
		put("vllm:request_success_total", own, float64(c.tally.ended["length"]))
		c.tally.write(&b, own)
	}
	return b.String()
}

// write writes the histograms.
func (t *tally) write(b *strings.Builder, labels string) {
	for name, h := range t.histograms {
		for i, bound := range h.bounds {
			fmt.Fprintf(b, "%s_bucket{%s,le=\"%g\"} %d\n", name, labels, bound, h.counts[i])
		}
		if strings.HasPrefix(name, "roundhouse_") {
			fmt.Fprintf(b, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, labels, h.n)
		}
		fmt.Fprintf(b, "%s_sum{%s} %g\n%s_count{%s} %d\n", name, labels, h.sum, name, labels, h.n)
	}
}

// age is how old the figures of Seen are.
func (f *Fleet) age() float64 { return f.now - f.scraped }

// watch tells what is so now, and again until all have been answered.
func (f *Fleet) watch(every float64, left func() bool) {
	f.watched.say(f.now, f.watched.page(f))
	if left() {
		f.at(f.now+every, func() { f.watch(every, left) })
	}
}

// boundsOf are a histogram's bounds, by its name.
func boundsOf(name string) []float64 {
	if b := doorBounds[name]; b != nil {
		return b
	}
	b := recordedBounds()[name]
	if b == nil {
		panic("BUG: vLLM has no histogram " + name)
	}
	return slices.Clip(b)
}
