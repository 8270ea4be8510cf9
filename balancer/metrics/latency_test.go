package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestHistograms: what is observed is told as prometheus' own histograms tell it, in sums
// where the labels of series are alike.
func TestHistograms(t *testing.T) {
	m := New("x", func() float64 { return 0 })
	own := map[string]prometheus.Histogram{}
	for name, bounds := range map[string][]float64{
		"request_duration_seconds": secondsBuckets, "ttft_seconds": secondsBuckets, "inter_token_seconds": gapBuckets, "overhead_seconds": tinyBuckets, "queue_seconds": secondsBuckets,
	} {
		own[name] = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "roundhouse_" + name, Buckets: bounds})
	}
	for i, ns := range []int64{0, 5e6, 5e6 + 1, 3e7, 1e9, 7e11} { // at a bound, above it, above all
		k := Labels{Pool: "p", Model: "m", Route: []string{"a", "b"}[i%2]}
		s, v := m.Of(k), float64(ns)/1e9
		s.Began(ns)
		s.Between(v, 3)
		m.Ended(s, k, &Outcome{Status: 200, Word: "ok", Priority: 1, Took: ns, Overhead: ns, Queued: ns})
		for name, h := range own {
			for range map[bool]int{true: 3, false: 1}[name == "inter_token_seconds"] {
				h.Observe(v)
			}
		}
	}
	found, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range own {
		reg := prometheus.NewRegistry()
		reg.MustRegister(h)
		want, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		count, sum, in := uint64(0), 0.0, make([]uint64, len(want[0].Metric[0].Histogram.Bucket))
		for _, f := range found {
			for _, one := range f.Metric {
				if f.GetName() != "roundhouse_"+name {
					continue
				}
				count += one.Histogram.GetSampleCount()
				sum += one.Histogram.GetSampleSum()
				for i, b := range one.Histogram.Bucket {
					in[i] += b.GetCumulativeCount()
				}
			}
		}
		h := want[0].Metric[0].Histogram
		if d := sum - h.GetSampleSum(); count != h.GetSampleCount() || d > 1e-9 || d < -1e-9 {
			t.Errorf("%s: %d, %v; want %d, %v", name, count, sum, h.GetSampleCount(), h.GetSampleSum())
		}
		for i, b := range h.Bucket {
			if in[i] != b.GetCumulativeCount() {
				t.Errorf("%s: up to %v: %d; want %d", name, b.GetUpperBound(), in[i], b.GetCumulativeCount())
			}
		}
	}
}
