package live

import (
	"math"

	"roundhouse/balancer/control"
	"roundhouse/live/history"
)

// poolSeries are the series of a pool, in the order that they are shown in, and how that
// of all pools is made of each.
var poolSeries = [...]string{
	"requests_per_second", "failed_per_second", "refused_per_second", "tokens_per_second", "prompt_tokens_per_second",
	"ttft_p50_seconds", "ttft_p95_seconds", "waiting", "in_flight", "kv_usage", "ready",
}

// read is the series of one pool that were read for an answer.
type read map[string][]float64

// poolCurves are the curves of a pool; of all together, and of each, where none is named.
func (h *Hub) poolCurves(w history.Window, pool string, wanted func(string) bool) []Curve {
	pools := []string{}
	begins := map[string]Curve{}
	for _, k := range h.store.Keys(func(k history.Key) bool {
		return k.Worker == "" && k.Name == "ready" && (pool == "" || k.Pool == pool)
	}) {
		pools = append(pools, k.Pool)
		begins[k.Pool] = h.curve(k, w)
	}
	all, out := read{}, []Curve{}
	for _, name := range pools {
		r := read{}
		for _, series := range stored(wanted) {
			values, _ := h.store.Read(history.Key{Pool: name, Name: series}, w)
			r[series] = values
		}
		out = append(out, r.curves(name, begins[name], wanted)...)
		all.add(r)
	}
	if pool == "" && len(pools) > 0 {
		whole := all.curves("", begins[pools[0]], wanted)
		out = append(whole, out...)
	}
	return out
}

// stored are the series that must be read for those that are wanted.
func stored(wanted func(string) bool) (names []string) {
	for _, name := range poolSeries {
		if wanted(name) && name != "ttft_p50_seconds" && name != "ttft_p95_seconds" {
			names = append(names, name)
		}
	}
	if wanted("kv_usage") {
		names = append(names, "kv_tokens")
	}
	if wanted("ttft_p50_seconds") || wanted("ttft_p95_seconds") {
		names = append(names, bucketNames[:]...)
	}
	return names
}

// curves are the curves that are wanted of what was read.
func (r read) curves(pool string, like Curve, wanted func(string) bool) (out []Curve) {
	for _, name := range poolSeries {
		if !wanted(name) {
			continue
		}
		values := r[name]
		switch name {
		case "ttft_p50_seconds":
			values = r.percentiles(0.5)
		case "ttft_p95_seconds":
			values = r.percentiles(0.95)
		}
		out = append(out, Curve{Name: name, Unit: units[name], Pool: control.Known(pool), Begins: like.Begins, Values: nullable(values)})
	}
	return out
}

// percentiles are made of the merged counts of each part of the window.
func (r read) percentiles(share float64) []float64 {
	out := make([]float64, len(r[bucketName(0)]))
	counts := make([]float64, bounds)
	for i := range out {
		for b := range counts {
			if counts[b] = r[bucketName(b)][i]; math.IsNaN(counts[b]) {
				counts[b] = 0
			}
		}
		out[i] = orNaN(percentile(counts, share))
	}
	return out
}

// add adds another pool's. Usage is of what both hold together.
func (r read) add(o read) {
	if usage, tokens := o["kv_usage"], o["kv_tokens"]; usage != nil {
		was, had := r["kv_usage"], r["kv_tokens"]
		if was == nil {
			was, had = make([]float64, len(usage)), make([]float64, len(usage))
			for i := range was {
				was[i] = math.NaN()
			}
		}
		for i := range was {
			switch {
			case math.IsNaN(usage[i]) || math.IsNaN(tokens[i]):
			case math.IsNaN(was[i]):
				was[i], had[i] = usage[i], tokens[i]
			default:
				sum := had[i] + tokens[i]
				was[i], had[i] = (was[i]*had[i]+usage[i]*tokens[i])/sum, sum
			}
		}
		r["kv_usage"], r["kv_tokens"] = was, had
	}
	for name, values := range o {
		if name == "kv_usage" || name == "kv_tokens" {
			continue
		}
		if r[name] == nil {
			r[name] = append([]float64(nil), values...)
			continue
		}
		for i, v := range values {
			switch {
			case math.IsNaN(v):
			case math.IsNaN(r[name][i]):
				r[name][i] = v
			default:
				r[name][i] += v
			}
		}
	}
}
