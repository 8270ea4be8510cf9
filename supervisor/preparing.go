package supervisor

import (
	"maps"
	"slices"
	"strings"

	"roundhouse/supervisor/core"
)

// preparing is how the preparations of rotations stand, by core.PreparedKey.
type preparing struct {
	prepared map[string]string // how it ended: empty for well
	tries    map[string]int    // so often the driver was away
}

func newPreparing() preparing {
	return preparing{prepared: map[string]string{}, tries: map[string]int{}}
}

// mostTries is how often a preparation is tried that the driver does not take,
// although it answers when it is asked what runs.
const mostTries = 20

// ended notes how a preparation ended. If its driver was away it is tried again.
func (p *preparing) ended(key string, err error, away bool) {
	if err == nil {
		p.prepared[key] = ""
		return
	}
	if away && p.tries[key] < mostTries {
		p.tries[key]++
		return
	}
	p.prepared[key] = err.Error()
}

// forget lets go of what belongs to no rotation that runs and to no worker that waits
// for its start.
func (p *preparing) forget(in core.Intent) {
	var wanted []string
	for _, r := range in.Rotations {
		if r.State == core.Running {
			wanted = append(wanted, core.PreparedKey(r.ID, ""))
		}
	}
	for id, w := range in.Workers {
		if w.Phase == core.Stopped || w.Phase == core.Failed {
			wanted = append(wanted, core.StartKey(id, w, ""))
		}
	}
	gone := func(key string) bool {
		return !slices.ContainsFunc(wanted, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	}
	maps.DeleteFunc(p.prepared, func(key, _ string) bool { return gone(key) })
	maps.DeleteFunc(p.tries, func(key string, _ int) bool { return gone(key) })
}
