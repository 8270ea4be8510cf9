package health

import (
	"fmt"
	"math"
	"strings"
	"time"

	"roundhouse/configs/workerid"
	"roundhouse/measure/anomaly"
	"roundhouse/measure/diagnose"
)

// processes tell one process of a worker from the next: its starts, and how often its
// counters fell back.
type processes map[string]*process

type process struct {
	said  float64
	falls int
}

// of is a word for a worker's present process.
func (p processes) of(r *diagnose.Recording, id string, door, own diagnose.Labels) string {
	x := p[id]
	if x == nil {
		x = &process{}
		p[id] = x
	}
	if said := r.Newest("vllm:generation_tokens_total", own); !math.IsNaN(said) {
		if said < x.said {
			x.falls++
		}
		x.said = said
	}
	return fmt.Sprintf("%g/%d", r.Newest("roundhouse_worker_starts_total", door), x.falls)
}

// minute is what the last minute of a recording says of the workers that were ready.
func minute(r *diagnose.Recording, now time.Time, p processes) anomaly.Minute {
	last := r.Last(time.Minute)
	m := anomaly.Minute{At: now, Workers: map[string]anomaly.Worker{}}
	for _, id := range last.Workers() {
		pool, name := workerid.Split(id)
		door, own := diagnose.Labels{"pool": pool, "worker": name}, diagnose.Labels{"worker": id}
		if last.Newest("roundhouse_worker_state", diagnose.Labels{"pool": pool, "worker": name, "state": "ready"}) == 0 {
			continue
		}
		m.Workers[id] = anomaly.Worker{Pool: pool, Process: p.of(last, id, door, own), Values: values(last, door, own)}
	}
	return m
}

// values are what a worker's figures were in a recording.
func values(r *diagnose.Recording, door, own diagnose.Labels) map[anomaly.Figure]anomaly.Value {
	mean := func(name string) anomaly.Value {
		n := r.Grew(name+"_count", own)
		if !(n > 0) {
			return anomaly.Value{}
		}
		return anomaly.Value{Mean: r.Grew(name+"_sum", own) / n, N: int(n)}
	}
	v := map[anomaly.Figure]anomaly.Value{anomaly.TTFT: mean("vllm:time_to_first_token_seconds"), anomaly.Gap: mean("vllm:inter_token_latency_seconds")}
	count := func(outcome string) float64 {
		n := r.Grew("roundhouse_worker_requests_total", diagnose.Labels{"pool": door["pool"], "worker": door["worker"], "outcome": outcome})
		if math.IsNaN(n) {
			return 0
		}
		return n
	}
	if bad, good := count("failed"), count("served"); bad+good > 0 {
		v[anomaly.Errors] = anomaly.Value{Mean: bad / (bad + good), N: int(bad + good)}
	}
	if bytes := r.Newest("roundhouse_worker_memory_bytes", door); bytes > 0 {
		v[anomaly.Memory] = anomaly.Value{Mean: bytes}
	}
	return v
}

// unusual are incidents as findings. They only advise: what turns workers by itself are a
// pool's slowdown and memory_growth.
func unusual(all []anomaly.Incident) (found []diagnose.Finding) {
	for _, x := range all {
		f := diagnose.Finding{
			Rule: "anomaly", Severity: diagnose.Warn, Confidence: diagnose.Medium, Object: x.Object, Since: x.Since,
			Cause:   "no rule knows it: look at what changed at that time (roundhouse events)",
			Command: "roundhouse events; roundhouse logs " + x.Object,
			Helped:  "a quarter of an hour without the sign",
		}
		if x.Missing {
			f.Severity, f.Says = diagnose.Info, "it has said nothing for five minutes"
			found = append(found, f)
			continue
		}
		var says []string
		for _, s := range x.Signs {
			says = append(says, s.String())
			f.Evidence = append(f.Evidence, diagnose.Evidence{Name: string(s.Figure), Text: s.String()})
		}
		f.Says = strings.Join(says, "; ")
		found = append(found, f)
	}
	return found
}
