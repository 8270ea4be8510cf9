package supervisor

import (
	"strconv"
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

// again forgets how everything ended: what was missing may be there by now.
func (p *preparing) again() {
	clear(p.prepared)
	clear(p.tries)
}

// forget lets go of what belongs to no rotation that runs.
func (p *preparing) forget(rotations map[string]core.Rotation) {
	running := map[string]bool{}
	for _, r := range rotations {
		if r.State == core.Running {
			running[strconv.FormatUint(r.ID, 10)] = true
		}
	}
	gone := func(key string) bool {
		id, _, _ := strings.Cut(key, " ")
		return !running[id]
	}
	for key := range p.prepared {
		if gone(key) {
			delete(p.prepared, key)
		}
	}
	for key := range p.tries {
		if gone(key) {
			delete(p.tries, key)
		}
	}
}
