package live

import (
	"math"
	"slices"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/live/history"
)

// The units of the series, by their names.
var units = map[string]string{
	"requests_per_second": "1/s", "failed_per_second": "1/s", "refused_per_second": "1/s",
	"tokens_per_second": "tokens/s", "prompt_tokens_per_second": "tokens/s",
	"ttft_p50_seconds": "s", "ttft_p95_seconds": "s", "ttft_seconds": "s",
	"waiting": "requests", "in_flight": "requests", "kv_usage": "share", "device_busy": "share",
	"ready": "workers", "memory_bytes": "bytes",
}

// bucketName is the series of first tokens up to one bound: what percentiles are made of.
// It is not shown.
func bucketName(i int) string { return bucketNames[i] }

var bucketNames = func() (names [bounds]string) {
	for i := range names {
		names[i] = "ttft/" + string(rune('a'+i))
	}
	return names
}()

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// sample puts the last step into the history once it is over, and returns its newest
// figures; nil: it is not over.
func (h *Hub) sample(now *Now, figures []Figures) *Sample {
	step := h.at.Truncate(history.Step)
	if step.Equal(h.sampled) || h.last.IsZero() {
		return nil
	}
	seconds := h.at.Sub(h.sampled).Seconds()
	if h.sampled.IsZero() || seconds > 60 {
		seconds = 0
	}
	h.sampled = step
	add := map[history.Key]float64{}
	for i := range figures[1:] {
		f := &figures[i+1]
		put := func(name string, v float64) { add[history.Key{Pool: f.pool, Name: name}] = v }
		brief := h.windows[f.pool].last(short)
		put("requests_per_second", orNaN(f.Requests))
		put("failed_per_second", orNaN(f.Failed))
		put("refused_per_second", orNaN(f.Refused))
		put("tokens_per_second", orNaN(f.Tokens))
		put("prompt_tokens_per_second", orNaN(f.PromptTokens))
		put("waiting", float64(f.Waiting))
		put("in_flight", float64(f.InFlight))
		put("ready", float64(f.ready))
		put("kv_usage", orNaN(f.KVUsage))
		put("kv_tokens", float64(f.holds))
		for b, n := range brief.ttft {
			put(bucketName(b), orNaN(brief.rate(n)))
		}
	}
	for i := range now.Workers {
		h.sampleWorker(&now.Workers[i], seconds, add)
	}
	h.store.Add(step, add)
	clear(h.tokens)
	return newest(step, figures, add, h.windows)
}

// sampleWorker adds the figures of one worker.
func (h *Hub) sampleWorker(w *control.WorkerShown, seconds float64, add map[history.Key]float64) {
	put := func(name string, v float64) {
		add[history.Key{Pool: w.Pool, Worker: w.ID, Name: name}] = v
	}
	put("kv_usage", orNaN(w.KV.Usage))
	put("in_flight", float64(w.Requests.InFlight))
	if w.Requests.Waiting != nil {
		put("waiting", float64(*w.Requests.Waiting))
	}
	if t := h.tokens[w.ID]; seconds > 0 {
		if t == nil {
			t = &workerSums{}
		}
		put("tokens_per_second", float64(t.tokens)/seconds)
		put("failed_per_second", float64(t.failed)/seconds)
	}
	put("ttft_seconds", orNaN(w.Traffic.TTFTSeconds))
	ready := 0.0
	if w.State == phase.Ready {
		ready = 1
	}
	put("ready", ready)
	memory := w.Device.MemoryUsed
	if memory == nil {
		memory = w.Device.HostMemory
	}
	put("memory_bytes", orNaN(memory))
	put("device_busy", orNaN(w.Device.Busy))
}

// newest is a step's figures as a message.
func newest(step time.Time, figures []Figures, add map[history.Key]float64, windows map[string]*window) *Sample {
	s := &Sample{At: step, Step: int(history.Step / time.Second)}
	value := func(pool, worker *string, name string, v float64) {
		x := SampleValue{Name: name, Pool: pool, Worker: worker}
		if !math.IsNaN(v) {
			v = round(v)
			x.Value = &v
		}
		s.Series = append(s.Series, x)
	}
	var all sums
	for i := range figures {
		f := &figures[i]
		brief := all
		if f.Pool != nil {
			brief = windows[f.pool].last(short)
		} else {
			for j := range figures[1:] {
				one := windows[figures[j+1].pool].last(short)
				brief.add(&one)
			}
		}
		value(f.Pool, nil, "requests_per_second", orNaN(f.Requests))
		value(f.Pool, nil, "failed_per_second", orNaN(f.Failed))
		value(f.Pool, nil, "refused_per_second", orNaN(f.Refused))
		value(f.Pool, nil, "tokens_per_second", orNaN(f.Tokens))
		value(f.Pool, nil, "prompt_tokens_per_second", orNaN(f.PromptTokens))
		value(f.Pool, nil, "ttft_p50_seconds", orNaN(brief.percentile(0.5)))
		value(f.Pool, nil, "ttft_p95_seconds", orNaN(brief.percentile(0.95)))
		value(f.Pool, nil, "waiting", float64(f.Waiting))
		value(f.Pool, nil, "in_flight", float64(f.InFlight))
		value(f.Pool, nil, "kv_usage", orNaN(f.KVUsage))
		value(f.Pool, nil, "ready", float64(f.ready))
	}
	for k, v := range add {
		if k.Worker != "" {
			pool, worker := k.Pool, k.Worker
			value(&pool, &worker, k.Name, v)
		}
	}
	slices.SortStableFunc(s.Series, func(a, b SampleValue) int {
		if (a.Worker == nil) != (b.Worker == nil) {
			if a.Worker == nil {
				return -1
			}
			return 1
		}
		return 0
	})
	return s
}
