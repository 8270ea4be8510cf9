package balancer

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/ledger"
	"roundhouse/configs/workerid"
)

// metrics is the door's part of the table of metrics. Names and labels are
// bound; a model or a route that is not configured is "other".
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	ttft      *prometheus.HistogramVec
	gaps      *prometheus.HistogramVec
	overhead  *prometheus.HistogramVec
	queue     *prometheus.HistogramVec
	refusals  *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	decisions *prometheus.CounterVec
	retries   *prometheus.CounterVec
	resumes   *prometheus.CounterVec
	hangups   *prometheus.CounterVec
	ejections *prometheus.CounterVec
	predicted *prometheus.HistogramVec

	mu     sync.Mutex
	series map[seriesKey]*series
}

// seriesKey and series keep the handles of the busiest metrics, so that a
// request looks up none by its labels.
type seriesKey struct{ pool, model, route string }

type series struct {
	ok                        prometheus.Counter
	duration, ttft            prometheus.Observer
	gap, overhead             prometheus.Observer
	queue                     [priorities]prometheus.Observer
	prompt, cached, generated prometheus.Counter
}

var (
	secondsBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	gapBuckets     = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	tinyBuckets    = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .1}
	ratioBuckets   = []float64{.1, .25, .35, .5, .7, .85, 1, 1.2, 1.4, 2, 3, 4, 10}
	phases         = []phase.Phase{phase.Ready, phase.Draining, phase.Drained, phase.Ejected, phase.Unreachable, phase.Starting}
)

func newMetrics(d *Door) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), series: map[seriesKey]*series{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "roundhouse_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "roundhouse_" + name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.requests = counter("requests_total", "Requests that have ended.", "pool", "model", "route", "code", "outcome")
	m.duration = histogram("request_duration_seconds", "From a request's head to its last byte.", secondsBuckets, "pool", "model", "route")
	m.ttft = histogram("ttft_seconds", "From a request's head to the first event or answer relayed.", secondsBuckets, "pool", "model", "route")
	m.gaps = histogram("inter_token_seconds", "Between two events of a stream.", gapBuckets, "pool", "model")
	m.overhead = histogram("overhead_seconds", "The door's own time before a request is sent on.", tinyBuckets, "pool")
	m.queue = histogram("queue_seconds", "Time spent waiting for room.", secondsBuckets, "pool", "priority")
	m.refusals = counter("refused_total", "Requests that the door refused.", "pool", "reason")
	m.tokens = counter("tokens_total", "Tokens, as workers count them.", "pool", "model", "route", "kind")
	m.decisions = counter("decisions_total", "Choices of a worker.", "pool", "policy", "reason")
	m.retries = counter("retries_total", "Requests sent again before their first event.", "pool", "reason")
	m.resumes = counter("resumes_total", "Streams that broke and were to go on at another worker.", "pool", "reason", "result")
	m.hangups = counter("hangups_total", "Clients that left before their answer was whole.", "pool", "phase")
	m.ejections = counter("ejections_total", "Workers taken out by the door.", "pool", "worker", "reason")
	m.predicted = histogram("ttft_prediction_ratio", "Time to the first event, from when a request was sent, by what was predicted; of times of 0.1 s and more.", ratioBuckets, "pool", "worker")
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "roundhouse_build_info", Help: "The program's version."}, []string{"component", "version"})
	build.WithLabelValues("door", d.opts.Build).Set(1)
	lost := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "roundhouse_log_lines_dropped_total", Help: "Lines of the log that its output did not take."}, d.droppedLines)
	m.registry.MustRegister(build, lost, newGauges(d))
	return m
}

// of returns the handles of a request's series.
func (m *metrics) of(a *asked) *series {
	k := a.labels()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[k]
	if s == nil {
		s = &series{
			ok:       m.requests.WithLabelValues(k.pool, k.model, k.route, "200", "ok"),
			duration: m.duration.WithLabelValues(k.pool, k.model, k.route), ttft: m.ttft.WithLabelValues(k.pool, k.model, k.route),
			gap: m.gaps.WithLabelValues(k.pool, k.model), overhead: m.overhead.WithLabelValues(k.pool),
			prompt: m.tokens.WithLabelValues(k.pool, k.model, k.route, "prompt"), cached: m.tokens.WithLabelValues(k.pool, k.model, k.route, "cached"),
			generated: m.tokens.WithLabelValues(k.pool, k.model, k.route, "generated"),
		}
		for p, name := range priorityNames {
			s.queue[p] = m.queue.WithLabelValues(k.pool, name)
		}
		m.series[k] = s
	}
	return s
}

// ended counts a request that has ended.
func (m *metrics) ended(a *asked, r *record) {
	s := r.series
	if s == nil {
		s = m.of(a)
		if r.first > 0 { // of a stream, its first event was counted when it came
			s.ttft.Observe(float64(r.first-a.start) / 1e9)
		}
	}
	if r.status == 200 && r.outcome == "ok" {
		s.ok.Inc()
	} else {
		k := a.labels()
		m.requests.WithLabelValues(k.pool, k.model, k.route, strconv.Itoa(r.status), r.outcome).Inc()
	}
	s.duration.Observe(float64(r.ended-a.start) / 1e9)
	s.overhead.Observe(float64(r.overhead) / 1e9)
	s.queue[a.priority].Observe(float64(r.queued) / 1e9)
	if u := &r.usage; u.Known {
		s.prompt.Add(float64(u.Prompt))
		s.cached.Add(float64(max(0, u.Cached)))
		s.generated.Add(float64(u.Generated))
	} else if n := r.generated.Load(); n > 0 {
		s.generated.Add(float64(n))
	}
}

// firstEvent counts a stream's first event.
func (m *metrics) firstEvent(a *asked, r *record) {
	r.series = m.of(a)
	r.series.ttft.Observe(float64(r.first-a.start) / 1e9)
}

// leastPredicted is the time in seconds below which a prediction means nothing: what the
// network and a step add is as much.
const leastPredicted = 0.1

// foretold compares a stream's first event with what its worker was chosen by.
func (m *metrics) foretold(w *worker, predicted, seconds float64) {
	if predicted > 0 && max(predicted, seconds) >= leastPredicted {
		pool, name := workerid.Split(w.id)
		m.predicted.WithLabelValues(pool, name).Observe(seconds / predicted)
	}
}

// between observes the time between events of a stream, once for each of n that came
// together.
func (s *series) between(seconds float64, n int) {
	for range n {
		s.gap.Observe(seconds)
	}
}

func (m *metrics) refused(pool, reason string) { m.refusals.WithLabelValues(pool, reason).Inc() }

// decision counts a choice.
func (m *metrics) decision(p *pool, reason ledger.Reason) {
	i := 0
	for i < len(reasons) && reasons[i] != reason {
		i++
	}
	k := int(p.policyNow())*len(reasons) + i
	c := p.decided[k].Load()
	if c == nil {
		made := m.decisions.WithLabelValues(p.name, p.policyNow().String(), string(reason))
		c = &made
		p.decided[k].Store(c)
	}
	(*c).Inc()
}

// reasons numbers the reasons of decisions.
var reasons = [...]ledger.Reason{ledger.Least, ledger.Tie, ledger.Prefix, ledger.Sticky, ledger.Only, ledger.NoReport}

// ejected counts a worker that was taken out.
func (m *metrics) ejected(w *ledger.Worker, reason string) {
	pool, name := workerid.Split(w.ID)
	m.ejections.WithLabelValues(pool, name, reason).Inc()
}

// forget drops the series of a worker that is no more.
func (m *metrics) forget(w *worker) {
	pool, name := workerid.Split(w.id)
	m.ejections.DeletePartialMatch(prometheus.Labels{"pool": pool, "worker": name})
	m.predicted.DeletePartialMatch(prometheus.Labels{"pool": pool, "worker": name})
}
