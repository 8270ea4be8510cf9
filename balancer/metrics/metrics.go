package metrics

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/configs/workerid"
)

// Metrics is the door's part of the table of metrics. Names and labels are
// bound; a model or a route that is not configured is "other".
type Metrics struct {
	Registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	latency   latencyNames
	refusals  *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	decisions *prometheus.CounterVec
	retries   *prometheus.CounterVec
	resumes   *prometheus.CounterVec
	hangups   *prometheus.CounterVec
	ejections *prometheus.CounterVec
	predicted *prometheus.HistogramVec

	keyRequests *prometheus.CounterVec
	keyTokens   *prometheus.CounterVec

	mu     sync.Mutex
	series map[Labels]*Series
}

// Labels and series keep the handles of the busiest metrics, so that a
// request looks up none by its labels.
type Labels struct{ Pool, Model, Route string }

// Series is the counters of requests of the same labels.
type Series struct {
	*latencies
	ok                        prometheus.Counter
	prompt, cached, generated prometheus.Counter
}

var (
	secondsBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	gapBuckets     = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	ratioBuckets   = []float64{.1, .25, .35, .5, .7, .85, 1, 1.2, 1.4, 2, 3, 4, 10}
	tinyBuckets    = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .1}
)

// New makes the metrics of a door of that build. lost is how many lines of
// its log were dropped.
func New(build string, lost func() float64) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), series: map[Labels]*Series{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "roundhouse_" + name, Help: help}, labels)
		m.Registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "roundhouse_" + name, Help: help, Buckets: buckets}, labels)
		m.Registry.MustRegister(h)
		return h
	}
	m.requests = counter("requests_total", "Requests that have ended.", "pool", "model", "route", "code", "outcome")
	m.latency = latencyNames{
		duration: describe("request_duration_seconds", "From a request's head to its last byte.", "pool", "model", "route"),
		ttft:     describe("ttft_seconds", "From a request's head to the first event or answer relayed; refusals have none.", "pool", "model", "route"),
		gap:      describe("inter_token_seconds", "Between two events of a stream.", "pool", "model"),
		overhead: describe("overhead_seconds", "The door's own time before a request is sent on.", "pool"),
		queue:    describe("queue_seconds", "Time spent waiting for room.", "pool", "priority"),
	}
	m.Registry.MustRegister(m)
	m.refusals = counter("refused_total", "Requests that the door refused.", "pool", "reason")
	m.tokens = counter("tokens_total", "Tokens, as workers count them.", "pool", "model", "route", "kind")
	m.keyRequests = counter("key_requests_total", "Requests that have ended, by the key of the configuration.", "key", "outcome")
	m.keyTokens = counter("key_tokens_total", "Tokens, as workers count them, by the key of the configuration.", "key", "kind")
	m.decisions = counter("decisions_total", "Choices of a worker.", "pool", "policy", "reason")
	m.retries = counter("retries_total", "Requests sent again before their first event.", "pool", "reason")
	m.resumes = counter("resumes_total", "Streams that broke and were to go on at another worker.", "pool", "reason", "result")
	m.hangups = counter("hangups_total", "Clients that left before their answer was whole.", "pool", "phase")
	m.ejections = counter("ejections_total", "Workers taken out by the door.", "pool", "worker", "reason")
	m.predicted = histogram("ttft_prediction_ratio", "Time to the first event, from when a request was sent, by what was predicted; of times of 0.1 s and more.", ratioBuckets, "pool", "worker")
	version := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "roundhouse_build_info", Help: "The program's version."}, []string{"component", "version"})
	version.WithLabelValues("door", build).Set(1)
	dropped := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "roundhouse_log_lines_dropped_total", Help: "Lines of the log that its output did not take."}, lost)
	m.Registry.MustRegister(version, dropped)
	return m
}

// Of returns the handles of the series that a request is counted in.
func (m *Metrics) Of(k Labels) *Series {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[k]
	if s == nil {
		s = &Series{
			latencies: newLatencies(),
			ok:        m.requests.WithLabelValues(k.Pool, k.Model, k.Route, "200", "ok"),
			prompt:    m.tokens.WithLabelValues(k.Pool, k.Model, k.Route, "prompt"), cached: m.tokens.WithLabelValues(k.Pool, k.Model, k.Route, "cached"),
			generated: m.tokens.WithLabelValues(k.Pool, k.Model, k.Route, "generated"),
		}
		m.series[k] = s
	}
	return s
}

// Outcome is what became of a request. Times are nanoseconds.
type Outcome struct {
	Status    int
	Word      string
	Priority  int
	Took      int64
	Overhead  int64
	Queued    int64
	Usage     resume.Usage
	Generated int64 // tokens, where usage is not known
}

// Ended counts a request that has ended, in the series s of its labels k.
func (m *Metrics) Ended(s *Series, k Labels, r *Outcome) {
	if r.Status == 200 && r.Word == "ok" {
		s.ok.Inc()
	} else {
		m.requests.WithLabelValues(k.Pool, k.Model, k.Route, strconv.Itoa(r.Status), r.Word).Inc()
	}
	s.mu.Lock()
	s.duration.observe(float64(r.Took)/1e9, 1)
	s.overhead.observe(float64(r.Overhead)/1e9, 1)
	s.queue[r.Priority].observe(float64(r.Queued)/1e9, 1)
	s.mu.Unlock()
	if u := &r.Usage; u.Known {
		s.prompt.Add(float64(u.Prompt))
		s.cached.Add(float64(max(0, u.Cached)))
		s.generated.Add(float64(u.Generated))
	} else if r.Generated > 0 {
		s.generated.Add(float64(r.Generated))
	}
}

// EndedOf counts a request that has ended for a configured key, also one that was
// refused.
func (m *Metrics) EndedOf(key string, r *Outcome) {
	m.keyRequests.WithLabelValues(key, r.Word).Inc()
	generated := r.Generated
	if u := &r.Usage; u.Known {
		m.keyTokens.WithLabelValues(key, "prompt").Add(float64(u.Prompt))
		m.keyTokens.WithLabelValues(key, "cached").Add(float64(max(0, u.Cached)))
		generated = u.Generated
	}
	if generated > 0 {
		m.keyTokens.WithLabelValues(key, "generated").Add(float64(generated))
	}
}

// ForgetKey drops the series of a key that is no more.
func (m *Metrics) ForgetKey(key string) {
	m.keyRequests.DeletePartialMatch(prometheus.Labels{"key": key})
	m.keyTokens.DeletePartialMatch(prometheus.Labels{"key": key})
}

// Began counts the first event or answer of a request, nanoseconds after its head.
func (s *Series) Began(after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ttft.observe(float64(after)/1e9, 1)
}

// leastPredicted is the time in seconds below which a prediction means nothing: what the
// network and a step add is as much.
const leastPredicted = 0.1

// Foretold compares a stream's first event with what its worker was chosen by.
func (m *Metrics) Foretold(worker string, predicted, seconds float64) {
	if predicted > 0 && max(predicted, seconds) >= leastPredicted {
		pool, name := workerid.Split(worker)
		m.predicted.WithLabelValues(pool, name).Observe(seconds / predicted)
	}
}

// Between observes the time between events of a stream, once for each of n that came
// together.
func (s *Series) Between(seconds float64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gap.observe(seconds, n)
}

// Refused counts a request that the door refused.
func (m *Metrics) Refused(pool, reason string) { m.refusals.WithLabelValues(pool, reason).Inc() }

// Retried counts a request that is sent again before its first event.
func (m *Metrics) Retried(pool, reason string) { m.retries.WithLabelValues(pool, reason).Inc() }

// Resumed counts a stream that broke, by how it went on.
func (m *Metrics) Resumed(pool, reason, result string) {
	m.resumes.WithLabelValues(pool, reason, result).Inc()
}

// HungUp counts a client that left before its answer was whole.
func (m *Metrics) HungUp(pool, phase string) { m.hangups.WithLabelValues(pool, phase).Inc() }

// Decided are the counters of a pool's decisions, by policy and reason.
type Decided [4 * len(reasons)]atomic.Pointer[prometheus.Counter]

// Decision counts a choice of a worker of a pool.
func (m *Metrics) Decision(c *Decided, pool string, policy ledger.Policy, reason ledger.Reason) {
	i := 0
	for i < len(reasons) && reasons[i] != reason {
		i++
	}
	k := int(policy)*len(reasons) + i
	n := c[k].Load()
	if n == nil {
		made := m.decisions.WithLabelValues(pool, policy.String(), string(reason))
		n = &made
		c[k].Store(n)
	}
	(*n).Inc()
}

// reasons numbers the reasons of decisions.
var reasons = [...]ledger.Reason{ledger.Least, ledger.Tie, ledger.Prefix, ledger.Sticky, ledger.Only, ledger.NoReport}

// Ejected counts a worker that was taken out.
func (m *Metrics) Ejected(w *ledger.Worker, reason string) {
	pool, name := workerid.Split(w.ID)
	m.ejections.WithLabelValues(pool, name, reason).Inc()
}

// Forget drops the series of a worker that is no more.
func (m *Metrics) Forget(worker string) {
	pool, name := workerid.Split(worker)
	m.ejections.DeletePartialMatch(prometheus.Labels{"pool": pool, "worker": name})
	m.predicted.DeletePartialMatch(prometheus.Labels{"pool": pool, "worker": name})
}
