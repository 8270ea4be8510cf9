package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/pagecache"
	"roundhouse/supervisor/schedule"
)

// trafficCount counts a pool's requests in the present part of the day.
type trafficCount struct {
	bin      int
	began    time.Time
	requests int64
}

// learn takes in how many requests each pool has, and at the end of each part
// of the day adds it to what is known of that time. It is written down four
// times an hour.
func (s *Supervisor) learn(o core.Observed, now time.Time) {
	for _, p := range s.plan.pools {
		wall := o.Wall.In(p.Plan.Zone())
		bin := schedule.BinOf(wall)
		m := s.trafficCounts[p.Name]
		if m == nil {
			m = &trafficCount{bin: bin, began: now}
			s.trafficCounts[p.Name] = m
		}
		for _, spec := range p.Workers {
			id := workerid.Of(p.Name, spec.Name)
			sum := o.Workers[id].Served + o.Workers[id].Failed
			w := s.fleet.at(id)
			if w.counted {
				m.requests += max(0, sum-w.served)
			}
			w.served, w.counted = sum, true
		}
		if bin == m.bin {
			continue
		}
		// A part that was seen for less than half of its time says little.
		if now.Sub(m.began) > schedule.Bin/2 && now.Sub(m.began) < 2*schedule.Bin {
			next := s.memory.intent.Clone()
			c := next.Pools[p.Name]
			c.Traffic.Learn(m.bin, float64(m.requests))
			next.Pools[p.Name] = c
			s.memory.remember(next)
		}
		m.bin, m.began, m.requests = bin, now, 0
	}
}

// readAhead puts a model's files into the page cache before the only worker
// that serves it is stopped. That it cannot is told, and stops nothing.
func (s *Supervisor) readAhead(ctx context.Context, spec driver.Spec) {
	model := hostPath(spec)
	if model == "" {
		return
	}
	room, err := pagecache.Room(s.options.Proc)
	var n int64
	began := time.Now()
	if err == nil {
		n, err = pagecache.Read(ctx, model, room)
	}
	text := fmt.Sprintf("%d MiB of %s are in the page cache, read in %v", n>>20, model, time.Since(began).Round(time.Millisecond))
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return
		}
		text = "its files are not in the page cache, so its start takes longer: " + err.Error()
	}
	s.tell(func() { s.events.note(spec.Pool, spec.ID(), "prepared", text) })
}

// hostPath is where a worker's model lies on this machine; empty: nowhere that
// is known. A container's is looked for among its volumes.
func hostPath(spec driver.Spec) string {
	model := spec.Engine.Model
	if model == "" || !filepath.IsAbs(model) {
		return ""
	}
	for _, v := range spec.Container.Volumes {
		parts := strings.Split(v, ":")
		if len(parts) < 2 || !filepath.IsAbs(parts[0]) {
			continue
		}
		inside := path.Clean(parts[1])
		if rest, ok := strings.CutPrefix(path.Clean(model), inside); ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(parts[0], rest)
		}
	}
	if spec.Container.Image != "" {
		return "" // it lies in the image
	}
	if _, err := os.Stat(model); err != nil {
		return ""
	}
	return model
}
