package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"roundhouse/balancer/surface"
)

// histogram counts under its series' lock: prometheus' own takes four atomic
// operations an observation, each on memory that another core wrote last.
type histogram struct {
	bounds []float64
	in     []uint64 // by bucket; the last is of what is above all bounds
	sum    float64
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, in: make([]uint64, len(bounds)+1)}
}

// observe counts n times v.
func (h *histogram) observe(v float64, n int) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.in[i] += uint64(n)
	h.sum += v * float64(n)
}

// add counts what another has counted by the same bounds.
func (h *histogram) add(o *histogram) {
	for i, n := range o.in {
		h.in[i] += n
	}
	h.sum += o.sum
}

// metric is the histogram as prometheus takes it.
func (h *histogram) metric(desc *prometheus.Desc, labels []string) prometheus.Metric {
	count, below := uint64(0), make(map[float64]uint64, len(h.bounds))
	for i, b := range h.bounds {
		count += h.in[i]
		below[b] = count
	}
	return prometheus.MustNewConstHistogram(desc, count+h.in[len(h.bounds)], h.sum, below, labels...)
}

// latencies are the histograms of one series.
type latencies struct {
	mu                            sync.Mutex
	duration, ttft, gap, overhead histogram
	queue                         [surface.Priorities]histogram
}

func newLatencies() *latencies {
	l := &latencies{
		duration: newHistogram(secondsBuckets), ttft: newHistogram(secondsBuckets), gap: newHistogram(gapBuckets), overhead: newHistogram(tinyBuckets),
	}
	for i := range l.queue {
		l.queue[i] = newHistogram(secondsBuckets)
	}
	return l
}

// latencyNames describes the histograms.
type latencyNames struct{ duration, ttft, gap, overhead, queue *prometheus.Desc }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("roundhouse_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	n := &m.latency
	for _, d := range [...]*prometheus.Desc{n.duration, n.ttft, n.gap, n.overhead, n.queue} {
		to <- d
	}
}

// Collect implements prometheus.Collector: series whose labels a histogram lacks are one
// in it.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	type key struct {
		desc *prometheus.Desc
		a, b string
	}
	sums, labels := map[key]*histogram{}, map[key][]string{}
	sum := func(desc *prometheus.Desc, h *histogram, names ...string) {
		k := key{desc, names[0], names[len(names)-1]}
		if sums[k] == nil {
			made := newHistogram(h.bounds)
			sums[k], labels[k] = &made, names
		}
		sums[k].add(h)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, s := range m.series {
		l := s.latencies
		l.mu.Lock()
		to <- l.duration.metric(m.latency.duration, []string{k.Pool, k.Model, k.Route})
		to <- l.ttft.metric(m.latency.ttft, []string{k.Pool, k.Model, k.Route})
		sum(m.latency.gap, &l.gap, k.Pool, k.Model)
		sum(m.latency.overhead, &l.overhead, k.Pool)
		for p := range l.queue {
			sum(m.latency.queue, &l.queue[p], k.Pool, surface.PriorityNames[p])
		}
		l.mu.Unlock()
	}
	for k, h := range sums {
		to <- h.metric(k.desc, labels[k])
	}
}
