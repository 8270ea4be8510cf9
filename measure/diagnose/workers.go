package diagnose

import (
	"fmt"
	"math"

	"roundhouse/measure/stat"
)

// slowWorker finds workers whose streams are slower than those of their peers in
// every third of the recording.
func (v *evidence) slowWorker() ([]Finding, string) {
	enough := false
	found := v.each(func(w *worker) *Finding {
		worst := 0.0
		var mine float64
		for part := range 3 {
			own, peers := v.streamRate(w, part), []float64(nil)
			for i := range v.workers {
				if o := &v.workers[i]; o.pool == w.pool && o.id != w.id && o.steady {
					if r := v.streamRate(o, part); !math.IsNaN(r) {
						peers = append(peers, r)
					}
				}
			}
			if len(peers) < v.t.Peers || math.IsNaN(own) {
				return nil
			}
			enough = true
			worst, mine = max(worst, own/median(peers)), own
		}
		if worst >= v.t.Slow {
			return nil
		}
		return &Finding{
			Severity: Warn,
			Says:     fmt.Sprintf("its streams get %.1f tokens a second, at most %s of what its peers' get", mine, percent(worst)),
			Cause:    "this engine or its device is slow: heat, a clock that is held down, a neighbour on the machine, or fragmented memory",
			Evidence: []Evidence{{Name: "its speed ÷ the peers' median", Text: percent(worst)}, figure("device in use", v.Gauge("roundhouse_device_utilization_ratio", w.own()), "%s", percent(median(v.Gauge("roundhouse_device_utilization_ratio", w.own()))))},
			Change:   v.trigger(w, "slowdown = 0.3", "turns a worker that has become slower"),
			Command:  "roundhouse rotate " + w.id + "; if that does not help, roundhouse doctor on its machine",
			Helped:   "its streams are as fast as the others'",
		}
	})
	if !enough {
		return found, fmt.Sprintf("it needs a worker and %d peers that generate", v.t.Peers)
	}
	return found, ""
}

// streamRate is the tokens a second of one stream at a worker in a third of the
// recording, NaN of too few tokens.
func (v *evidence) streamRate(w *worker, part int) float64 {
	n := len(v.Times) - 1
	from, until := 1+n*part/3, 1+n*(part+1)/3
	sum := zeroed(total(v.Growth("vllm:inter_token_latency_seconds_sum", w.own())[from:until]))
	count := zeroed(total(v.Growth("vllm:inter_token_latency_seconds_count", w.own())[from:until]))
	if count < v.t.Finished || sum <= 0 {
		return math.NaN()
	}
	return count / sum
}

// workerErrors finds workers that fail more than their peers do.
func (v *evidence) workerErrors() ([]Finding, string) {
	count := func(w *worker, outcome string) float64 {
		return zeroed(v.Grew("roundhouse_worker_requests_total", Labels{"pool": w.pool, "worker": w.name, "outcome": outcome}))
	}
	var found []Finding
	for i := range v.workers {
		w := &v.workers[i]
		bad, good, othersBad, othersGood := count(w, "failed"), count(w, "served"), 0.0, 0.0
		for k := range v.workers {
			if o := &v.workers[k]; o.pool == w.pool && k != i {
				othersBad, othersGood = othersBad+count(o, "failed"), othersGood+count(o, "served")
			}
		}
		if bad < v.t.Errors || othersBad+othersGood == 0 || bad/(bad+good) <= othersBad/(othersBad+othersGood) {
			continue
		}
		p := stat.Fisher(int(bad), int(good), int(othersBad), int(othersGood))
		if p >= v.t.ErrorsP {
			continue
		}
		found = append(found, Finding{
			Severity: Critical, Object: w.id,
			Says:     fmt.Sprintf("%.0f of %.0f requests failed here, and %.0f of %.0f at its peers", bad, bad+good, othersBad, othersBad+othersGood),
			Cause:    "this worker is at fault, not the requests: its peers serve the like",
			Evidence: []Evidence{{Name: "chance that it is chance", Text: fmt.Sprintf("%.2g", p)}},
			Command:  "roundhouse drain " + w.id + "; roundhouse logs " + w.id,
			Helped:   "roundhouse_worker_requests_total{outcome=\"failed\"} stands still",
		})
	}
	return found, ""
}

// prediction finds workers whose first tokens come at other times than the ledger
// predicts, by which it places requests.
func (v *evidence) prediction() ([]Finding, string) {
	var found []Finding
	for i := range v.workers {
		w := &v.workers[i]
		d := v.Histogram("roundhouse_ttft_prediction_ratio", w.door())
		ratio := d.Quantile(.5)
		if !w.steady || d.N < v.t.Finished || !v.keepsOff(w) {
			continue
		}
		found = append(found, Finding{
			Severity: Info, Object: w.id,
			Says:     fmt.Sprintf("first tokens come after %.1f times the time that was predicted", ratio),
			Cause:    "the worker computes prompts at another pace than it did, or holds requests of which the door does not know",
			Evidence: []Evidence{{Name: "TTFT ÷ predicted, p25, p50, p75", Text: fmt.Sprintf("%.2g, %.2g, %.2g", d.Quantile(.25), ratio, d.Quantile(.75))}},
			Command:  "roundhouse explain REQUEST shows predictions; roundhouse rotate " + w.id + " lets the door learn anew",
			Helped:   "the median of roundhouse_ttft_prediction_ratio comes near 1",
		})
	}
	return found, ""
}

// keepsOff reports whether predictions were wrong, and to the same side, in every third
// of the recording: what is learned anew puts itself right.
func (v *evidence) keepsOff(w *worker) bool {
	n := len(v.Times)
	over, under := 0, 0
	for part := range 3 {
		ratio := v.between(n*part/3, n*(part+1)/3).Histogram("roundhouse_ttft_prediction_ratio", w.door()).Quantile(.5)
		switch {
		case ratio >= v.t.Prediction:
			over++
		case ratio <= 1/v.t.Prediction:
			under++
		}
	}
	return over == 3 || under == 3
}
