package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sort"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"roundhouse/configs/workerid"
	"roundhouse/measure/diagnose"
	"roundhouse/supervisor/health"
)

// The supervisor's own metrics. What the doors know is relayed before them.
var (
	descStarts = prometheus.NewDesc("roundhouse_worker_starts_total", "Starts of workers.", []string{"pool", "worker", "reason"}, nil)
	descTurns  = prometheus.NewDesc("roundhouse_rotations_total", "Rotations by how they ended.", []string{"pool", "result"}, nil)
	descGood   = prometheus.NewDesc("roundhouse_rotation_last_success_timestamp_seconds", "When a rotation last got through.", []string{"pool"}, nil)
	descMemory = prometheus.NewDesc("roundhouse_worker_memory_bytes", "Host memory that a worker's process or container holds.", []string{"pool", "worker"}, nil)
	descReload = prometheus.NewDesc("roundhouse_config_last_reload_successful", "Whether the configuration in force is the file's.", nil, nil)
	descBuild  = prometheus.NewDesc("roundhouse_build_info", "What runs.", []string{"component", "version"}, nil)
)

// sample is a snapshot of the counters, as a prometheus.Collector.
type sample []prometheus.Metric

// Describe makes sample an unchecked collector.
func (sample) Describe(chan<- *prometheus.Desc) {}

// Collect hands the snapshot over.
func (m sample) Collect(out chan<- prometheus.Metric) {
	for _, x := range m {
		out <- x
	}
}

// sample takes a snapshot; it runs in the loop.
func (s *Supervisor) sample() sample {
	var m sample
	add := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		m = append(m, prometheus.MustNewConstMetric(d, kind, v, labels...))
	}
	for k, v := range s.counters.starts {
		add(descStarts, prometheus.CounterValue, v, k[:]...)
	}
	for k, v := range s.counters.rotations {
		add(descTurns, prometheus.CounterValue, v, k[:]...)
	}
	for id, m := range s.fleet.members {
		if pool, worker := workerid.Split(id); m.instance.Running && m.instance.Memory > 0 {
			add(descMemory, prometheus.GaugeValue, float64(m.instance.Memory), pool, worker)
		}
	}
	for pool, t := range s.counters.success {
		add(descGood, prometheus.GaugeValue, float64(t.Unix()), pool)
	}
	good := 1.0
	if s.reloading.failed != nil {
		good = 0
	}
	add(descReload, prometheus.GaugeValue, good)
	return m
}

// serveMetrics writes the doors' metrics and then our own.
func (s *Supervisor) serveMetrics(w http.ResponseWriter, r *http.Request) {
	text, err := s.page(r.Context())
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	_, _ = w.Write(text) // the asker may be gone
}

// page is the doors' metrics, and then our own.
func (s *Supervisor) page(ctx context.Context) ([]byte, error) {
	var own sample
	var doors []*door
	if err := s.ask(ctx, func() { own, doors = s.sample(), s.gate.living() }); err != nil {
		return nil, err
	}
	sort.Slice(doors, func(i, j int) bool { return doors[i].id > doors[j].id })
	var page []byte
	told := false
	for _, d := range doors {
		status, data, err := d.ask(ctx, http.MethodGet, "/metrics", nil)
		if err == nil && status == http.StatusOK {
			page, told = withBuild(data, s.options.Version)
			break // two doors' families cannot stand in one page
		}
	}
	if !told {
		own = append(own, prometheus.MustNewConstMetric(descBuild, prometheus.GaugeValue, 1, "supervisor", s.options.Version))
	}
	text := bytes.NewBuffer(page)
	if err := write(text, own, s.counters.seconds); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// write appends the collectors' metrics in the text format.
func write(text *bytes.Buffer, collectors ...prometheus.Collector) error {
	registry := prometheus.NewRegistry()
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(text, f); err != nil {
			return err
		}
	}
	return nil
}

// withBuild adds our own build to the door's page: a family may stand there
// once.
func withBuild(data []byte, version string) (page []byte, added bool) {
	var out bytes.Buffer
	for line := range bytes.Lines(data) {
		out.Write(line)
		if !added && bytes.HasPrefix(line, []byte("roundhouse_build_info{")) {
			fmt.Fprintf(&out, "roundhouse_build_info{component=\"supervisor\",version=%q} 1\n", version)
			added = true
		}
	}
	return out.Bytes(), added
}

// vitals is where the watch over the service's health has its figures from.
func (s *Supervisor) vitals() health.Source {
	return health.Source{
		Log: s.log,
		Page: func(ctx context.Context) (string, error) {
			page, err := s.page(ctx)
			return string(page), err
		},
		Facts: func(ctx context.Context) (f diagnose.Facts) {
			_ = s.ask(ctx, func() { f = health.Facts(s.plan.config.Redacted()) }) // at the end there is nothing to know
			return f
		},
		Note: func(ctx context.Context, pool, worker, kind, text string) {
			_ = s.ask(ctx, func() { // at the end nobody listens
				s.events.note(pool, worker, kind, text)
				s.flushEvents()
			})
		},
	}
}
