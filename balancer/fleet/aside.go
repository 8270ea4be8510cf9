package fleet

import (
	"bytes"
	"context"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"roundhouse/balancer/control"
)

// aside is what a worker's own metrics tell that no choice depends on: for people.
type aside struct {
	mu                         sync.Mutex
	at                         int64
	preemptions, queries, hits float64 // NaN: not told
	device                     *control.Device
}

// asideEvery is how often it is looked at.
const asideEvery = 5 * time.Second

// due reports whether it is time to look again, and takes note of it.
func (s *aside) due(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != 0 && now-s.at < int64(asideEvery) {
		return false
	}
	s.at = now
	return true
}

// forget drops what another process has said.
func (s *aside) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.preemptions, s.queries, s.hits, s.device = 0, math.NaN(), math.NaN(), math.NaN(), nil
}

// take reads a worker's metrics. Several engines of one worker are added up.
func (s *aside) take(text []byte) {
	nan := math.NaN()
	preemptions, queries, hits := nan, nan, nan
	var device control.Device
	found := false
	for line := range bytes.Lines(text) {
		name, labels, value, ok := sample(bytes.TrimSuffix(line, []byte("\n")))
		if !ok {
			continue
		}
		switch string(name) {
		case "vllm:num_preemptions_total", "vllm:num_preemptions":
			add(&preemptions, value)
		case "vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries":
			add(&queries, value)
		case "vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits":
			add(&hits, value)
		default:
			figure, ok := strings.CutPrefix(string(name), "roundhouse_device_")
			if ok {
				found = true
				note(&device, figure, label(labels, "device"), value)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.preemptions, s.queries, s.hits, s.device = preemptions, queries, hits, nil
	if found {
		s.device = &device
	}
}

// note enters one figure of a device.
func note(d *control.Device, figure, name string, value float64) {
	d.Name = control.Known(strings.Clone(name))
	switch figure {
	case "utilization_ratio":
		d.Busy = &value
	case "memory_used_bytes":
		d.MemoryUsed = &value
	case "memory_total_bytes":
		d.MemoryTotal = &value
	case "power_watts":
		d.Power = &value
	case "temperature_celsius":
		d.Temperature = &value
	}
}

// show adds what is known to a worker's state.
func (s *aside) show(to *control.WorkerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == 0 {
		return
	}
	if !math.IsNaN(s.preemptions) {
		n := int64(s.preemptions)
		to.Preemptions = &n
	}
	if s.queries > 0 && !math.IsNaN(s.hits) {
		share := s.hits / s.queries
		to.PrefixHits = &share
	}
	to.Device = s.device
}

// watchAside looks at the metrics of a worker whose status stream tells the rest.
func (w *Worker) watchAside(ctx context.Context, f *Fleet) {
	for wait := time.Second; ; wait = asideEvery {
		Sleep(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		if text, err := w.readMetrics(ctx, f); err == nil && w.aside.due(f.now()) {
			w.aside.take(text)
		}
	}
}

func (w *Worker) readMetrics(ctx context.Context, f *Fleet) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, asideEvery)
	defer cancel()
	resp, err := w.get(ctx, f, "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, 8<<20))
}
