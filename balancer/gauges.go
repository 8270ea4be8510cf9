package balancer

import (
	"github.com/prometheus/client_golang/prometheus"

	"roundhouse/configs/workerid"
)

// gaugeSet reads the ledger whenever metrics are asked for.
type gaugeSet struct {
	d                                                   *Door
	queued, inFlight, state, capacity, kv, aged, faults *prometheus.Desc
	answers                                             *prometheus.Desc
}

func newGauges(d *Door) *gaugeSet {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("roundhouse_"+name, help, labels, nil)
	}
	return &gaugeSet{
		d:        d,
		queued:   desc("queue_requests", "Requests that wait for room.", "pool", "priority"),
		inFlight: desc("in_flight_requests", "Requests of this door at a worker.", "pool", "worker"),
		state:    desc("worker_state", "1 for the state that a worker is in.", "pool", "worker", "state"),
		capacity: desc("worker_kv_capacity_tokens", "What a worker's KV cache holds.", "pool", "worker"),
		kv:       desc("worker_kv_tokens", "KV tokens of a worker: charged by this door, foreign, and as it reports.", "pool", "worker", "source"),
		faults:   desc("door_fault", "1 for what the door could not take up: it goes on with the old one.", "what"),
		answers:  desc("worker_requests_total", "Requests that a worker has served or failed, since its generation began.", "pool", "worker", "outcome"),
		aged:     desc("worker_report_age_seconds", "The age of a worker's last report.", "pool", "worker"),
	}
}

// Describe implements prometheus.Collector.
func (g *gaugeSet) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, ch) }

// Collect implements prometheus.Collector.
func (g *gaugeSet) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	v := g.d.current()
	if v == nil {
		return
	}
	for _, what := range faultNames {
		on := 0.0
		if g.d.faults.is(what) {
			on = 1
		}
		put(g.faults, on, what)
	}
	for _, p := range v.pools {
		p.queue.mu.Lock()
		for i := range p.queue.classes {
			put(g.queued, float64(p.queue.classes[i].n), p.name, priorityNames[i])
		}
		p.queue.mu.Unlock()
	}
	for _, w := range v.workers {
		pool, name := workerid.Split(w.id)
		s := w.view(g.d)
		put(g.inFlight, float64(s.Requests.InFlight), pool, name)
		for outcome, n := range map[string]int64{"served": s.Served, "failed": s.Failed} {
			ch <- prometheus.MustNewConstMetric(g.answers, prometheus.CounterValue, float64(n), pool, name, outcome)
		}
		for _, p := range phases {
			on := 0.0
			if s.State == p {
				on = 1
			}
			put(g.state, on, pool, name, string(p))
		}
		if s.KV.CapacityTokens != nil {
			put(g.capacity, float64(*s.KV.CapacityTokens), pool, name)
		}
		put(g.kv, float64(s.KV.ChargedTokens), pool, name, "charged")
		put(g.kv, float64(s.KV.ForeignTokens), pool, name, "foreign")
		if s.KV.ReportedTokens != nil {
			put(g.kv, float64(*s.KV.ReportedTokens), pool, name, "reported")
		}
		if s.KV.ReportAgeSeconds != nil {
			put(g.aged, *s.KV.ReportAgeSeconds, pool, name)
		}
	}
}
