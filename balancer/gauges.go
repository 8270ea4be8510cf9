package balancer

import (
	"bytes"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/valyala/fasthttp"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/surface"
	"roundhouse/configs/workerid"
)

// gaugeSet reads the ledger whenever metrics are asked for.
type gaugeSet struct {
	d                                                   *common
	queued, inFlight, state, capacity, kv, aged, faults *prometheus.Desc
	answers, budgetUsed, budgetLeft, unwritten          *prometheus.Desc
	canaryShare, canaryState, canaryJudged              *prometheus.Desc
}

// phases are the states of a worker that metrics tell.
var phases = []phase.Phase{phase.Ready, phase.Draining, phase.Drained, phase.Ejected, phase.Unreachable, phase.Starting}

func newGauges(d *common) *gaugeSet {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("roundhouse_"+name, help, labels, nil)
	}
	return &gaugeSet{
		d:            d,
		queued:       desc("queue_requests", "Requests that wait for room.", "pool", "priority"),
		inFlight:     desc("in_flight_requests", "Requests of this door at a worker.", "pool", "worker"),
		state:        desc("worker_state", "1 for the state that a worker is in.", "pool", "worker", "state"),
		capacity:     desc("worker_kv_capacity_tokens", "What a worker's KV cache holds.", "pool", "worker"),
		kv:           desc("worker_kv_tokens", "KV tokens of a worker: charged by this door, foreign, and as it reports.", "pool", "worker", "source"),
		faults:       desc("door_fault", "1 for what the door could not take up: it goes on with the old one.", "what"),
		answers:      desc("worker_requests_total", "Requests that a worker has served or failed, since its generation began.", "pool", "worker", "outcome"),
		unwritten:    desc("request_log_lines_dropped_total", "Lines of door.log_requests that its file did not take."),
		budgetUsed:   desc("key_budget_used", "What a key has used of a budget, at all doors together.", "key", "period", "kind"),
		budgetLeft:   desc("key_budget_left", "What is left of a key's budget.", "key", "period", "kind"),
		canaryShare:  desc("canary_share", "The share of a route's requests that goes to the model on trial.", "route", "model"),
		canaryState:  desc("canary_state", "1 for the state that a route's trial is in.", "route", "model", "state"),
		canaryJudged: desc("canary_step_requests", "Requests judged at this door since the trial's step began.", "route", "side", "outcome"),
		aged:         desc("worker_report_age_seconds", "The age of a worker's last report.", "pool", "worker"),
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
	ch <- prometheus.MustNewConstMetric(g.unwritten, prometheus.CounterValue, float64(g.d.requests.Dropped()))
	for _, p := range v.pools {
		for i, n := range p.Queue.ByClass() {
			put(g.queued, float64(n), p.Name, surface.PriorityNames[i])
		}
	}
	for _, k := range v.keys.Keys {
		for _, l := range g.d.usage.Budgets(&k.Cfg, time.Now()) {
			put(g.budgetUsed, float64(l.Used), k.Name, l.Period, l.Kind)
			put(g.budgetLeft, float64(max(0, l.Limit-l.Used)), k.Name, l.Period, l.Kind)
		}
	}
	for _, c := range g.d.canaries.Shown() {
		g.canary(&c, put)
	}
	for _, w := range v.workers {
		pool, name := workerid.Split(w.ID)
		s := w.State(&g.d.fleet)
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

// canary tells where a trial stands.
func (g *gaugeSet) canary(c *control.CanaryShown, put func(*prometheus.Desc, float64, ...string)) {
	put(g.canaryShare, c.Share, c.Route, c.Model)
	for _, state := range []control.CanaryPhase{control.CanaryRunning, control.CanaryPromoted, control.CanaryRolledBack} {
		on := 0.0
		if c.State == state {
			on = 1
		}
		put(g.canaryState, on, c.Route, c.Model, string(state))
	}
	for side, s := range map[string]control.CanarySide{"trial": c.Trial, "others": c.Others} {
		put(g.canaryJudged, float64(s.Requests-s.Failed-s.Refused), c.Route, side, "ok")
		put(g.canaryJudged, float64(s.Failed), c.Route, side, "failed")
		put(g.canaryJudged, float64(s.Refused), c.Route, side, "refused")
	}
}

// serveMetrics answers GET /metrics on the door's listener.
func (d *common) serveMetrics(ctx *fasthttp.RequestCtx, v *snapshot) {
	if v.set.Door.Metrics != "listen" && v.set.Door.Metrics != "" {
		d.fail(ctx, surface.NotFound("/metrics is not served here"))
		return
	}
	var b bytes.Buffer
	d.writeMetrics(&b, true)
	ctx.SetContentType(metricsType)
	ctx.SetBody(b.Bytes())
}

// writeMetrics writes the door's metrics and, where asked, those of all workers with
// a label that names each.
func (d *common) writeMetrics(w io.Writer, workers bool) {
	families, err := d.metrics.Registry.Gather()
	if err != nil {
		d.log.Error("cannot gather metrics", "error", err.Error())
	}
	for _, f := range families {
		expfmt.MetricFamilyToText(w, f)
	}
	if workers {
		d.fleet.Expose(w, d.current().workers)
	}
}

const metricsType = "text/plain; version=0.0.4; charset=utf-8"
