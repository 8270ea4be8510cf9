package docker

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"
)

// memoryEvery is how often a container's memory is asked for: it creeps over
// hours, and containers are listed every second.
const memoryEvery = 10 * time.Second

// memory is what a container was last found to hold.
type memory struct {
	bytes int64
	asked time.Time
}

// memory returns how much memory a container holds, without the cache of files
// that the kernel takes back when it must; 0 where the engine does not say.
func (d *Driver) memory(ctx context.Context, id string) int64 {
	if !d.can().Measures { // what it says then is what it holds itself, with all of its containers
		return 0
	}
	d.mu.Lock()
	m := d.memories[id]
	d.mu.Unlock()
	if time.Since(m.asked) < memoryEvery {
		return m.bytes
	}
	m.asked = time.Now()
	if stats, err := d.engine.ContainerStatsOneShot(ctx, id); err == nil {
		m.bytes = memoryUsed(stats.Body)
		stats.Body.Close()
	}
	d.mu.Lock()
	d.memories[id] = m
	d.mu.Unlock()
	return m.bytes
}

// forget drops what is known of containers that are no longer there, but for
// those that are taken over, which no list has.
func (d *Driver) forget(list []container.Summary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.memories) <= len(list)+len(d.takeovers) {
		return
	}
	for id, m := range d.memories {
		if time.Since(m.asked) > 2*memoryEvery {
			delete(d.memories, id)
		}
	}
}

// memoryUsed reads a statistics answer.
func memoryUsed(r io.Reader) int64 {
	var answer struct {
		Memory struct {
			Usage int64            `json:"usage"`
			Stats map[string]int64 `json:"stats"`
		} `json:"memory_stats"`
	}
	if json.NewDecoder(io.LimitReader(r, 1<<20)).Decode(&answer) != nil {
		return 0
	}
	cache := answer.Memory.Stats["inactive_file"] // of control groups of version 2
	if total, ok := answer.Memory.Stats["total_inactive_file"]; ok {
		cache = total
	}
	return max(0, answer.Memory.Usage-cache)
}
