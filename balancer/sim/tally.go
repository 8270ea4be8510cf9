package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"roundhouse/balancer/sim/recorded"
)

// tally is what an engine counts of its requests, under the names of vLLM's metrics.
type tally struct {
	histograms map[string]*histogram
	ended      map[string]int // by reason
}

// histogram counts what lies at or below each bound; the last one is +Inf.
type histogram struct {
	bounds []float64
	counts []int
	sum    float64
	n      int
}

// recordedBounds are the bounds of every histogram of a real vLLM.
var recordedBounds = sync.OnceValue(func() map[string][]float64 {
	out := map[string][]float64{}
	for line := range strings.Lines(string(recorded.Metrics())) {
		if name, le, ok := bucketOf(line); ok && !slices.Contains(out[name], le) {
			out[name] = append(out[name], le)
		}
	}
	return out
})

// bucketOf is the histogram and the bound that a line of an exposition counts.
func bucketOf(line string) (name string, le float64, ok bool) {
	name, labels, found := strings.Cut(line, "_bucket{")
	_, rest, hasBound := strings.Cut(labels, `le="`)
	if !found || !hasBound {
		return "", 0, false
	}
	text, _, _ := strings.Cut(rest, `"`)
	le, err := strconv.ParseFloat(text, 64)
	return name, le, err == nil
}

func newTally() *tally { return &tally{histograms: map[string]*histogram{}, ended: map[string]int{}} }

// observe counts one value of a histogram.
func (t *tally) observe(name string, value float64) {
	h := t.histograms[name]
	if h == nil {
		b := boundsOf(name)
		h = &histogram{bounds: b, counts: make([]int, len(b))}
		t.histograms[name] = h
	}
	h.sum += value
	h.n++
	for i, b := range h.bounds {
		if value <= b {
			h.counts[i]++
		}
	}
}

// value is what a line of the recorded exposition says of this engine.
func (t *tally) value(line, name string) (string, bool) {
	if of, le, ok := bucketOf(line); ok {
		if h := t.histograms[of]; h != nil {
			return fmt.Sprintf("%d.0", h.counts[slices.Index(h.bounds, le)]), true
		}
		return "", false
	}
	if name == "vllm:request_success_total" {
		for reason, n := range t.ended {
			if strings.Contains(line, fmt.Sprintf("finished_reason=%q", reason)) {
				return fmt.Sprintf("%d.0", n), true
			}
		}
		return "", false
	}
	if of, sums := strings.CutSuffix(name, "_sum"); sums && t.histograms[of] != nil {
		return fmt.Sprint(t.histograms[of].sum), true
	}
	if of, counts := strings.CutSuffix(name, "_count"); counts && t.histograms[of] != nil {
		return fmt.Sprintf("%d.0", t.histograms[of].n), true
	}
	return "", false
}

// underway is an answer under way and its moments.
type underway struct {
	tokens                        chan struct{}
	arrived, started, first, last time.Time
}

// said notes a token.
func (t *tally) said(u *underway, now time.Time) {
	if u.first.IsZero() {
		u.first = now
		t.observe("vllm:time_to_first_token_seconds", now.Sub(u.arrived).Seconds())
	} else {
		t.observe("vllm:inter_token_latency_seconds", now.Sub(u.last).Seconds())
	}
	u.last = now
}

// finish notes the end of an answer that wanted so many tokens.
func (t *tally) finish(u *underway, s *Sequence, now time.Time) {
	if s.Out < cap(u.tokens) {
		t.ended["abort"]++
		return
	}
	t.ended["length"]++
	t.observe("vllm:request_prompt_tokens", float64(s.Prompt))
	t.observe("vllm:request_generation_tokens", float64(s.Out))
	t.observe("vllm:e2e_request_latency_seconds", now.Sub(u.arrived).Seconds())
	t.observe("vllm:request_queue_time_seconds", u.started.Sub(u.arrived).Seconds())
	t.observe("vllm:request_prefill_time_seconds", u.first.Sub(u.started).Seconds())
	t.observe("vllm:request_decode_time_seconds", u.last.Sub(u.first).Seconds())
	t.observe("vllm:request_inference_time_seconds", u.last.Sub(u.started).Seconds())
}
