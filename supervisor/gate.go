package supervisor

import (
	"fmt"
	"os"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/configs"
)

// gate is the doors, and what they stand on.
type gate struct {
	doors    map[string]*door // by id
	listen   *os.File         // the listener, for the next door; nil: the door alone has it
	address  string           // where the door listens
	tls      *configs.TLS     // where the door finds its certificate
	renewing bool             // its files are being looked at
	renewed  time.Time        // when they were last
	stale    string           // why the copy could not be renewed
	try      time.Time        // no door is started before
	failures int              // in a row

	handover   *handover              // nil: none under way
	canaries   map[string]canaryNoted // by route
	handedOver bool                   // it was tried; an old door that stayed stays
}

// living are the doors that may send requests to workers: our own, whose processes
// are seen, and the given ones that answer, or have answered lately. As long as no door
// answers, all of them may.
func (g *gate) living() []*door {
	var out, silent []*door
	for _, d := range g.doors {
		if d.absent {
			silent = append(silent, d)
		} else {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return silent
	}
	return out
}

// tend notes which given doors have not answered for so long that nothing waits for
// them any more, and which are back.
func (g *gate) tend(now time.Time, after time.Duration, events *events) {
	for _, d := range g.doors {
		absent := !d.child && !d.silent.IsZero() && now.Sub(d.silent) > after
		if absent == d.absent {
			continue
		}
		d.absent = absent
		text := d.id + " answers again"
		if absent {
			text = fmt.Sprintf("%s (%s) does not answer since %v, and nothing waits for it: %s", d.id, d.socket, now.Sub(d.silent).Round(time.Second), d.lastErr)
		}
		events.note("", "", "door", text)
	}
}

// heeded reports whether given doors take our word, or do not answer at all.
// While they obey another supervisor nothing is begun; what is to be begun is
// decided again in the next step.
func (g *gate) heeded() bool {
	for _, d := range g.doors {
		if !d.child && (!d.refused.IsZero() || d.ack.Epoch == 0 && d.lastErr == "") {
			return false
		}
	}
	return true
}

// wake has every door look for a new worker set at once.
func (g *gate) wake() {
	for _, d := range g.doors {
		d.wake()
	}
}

// shown is the doors as the admin API shows them: as one.
func (g *gate) shown() control.DoorShown {
	v := control.DoorShown{State: phase.Starting, Listen: control.Known(g.address), Faults: []control.Fault{}}
	for _, d := range g.doors {
		if d.lastErr != "" {
			v.Faults = append(v.Faults, control.Fault{What: "door " + d.id, Error: d.lastErr, Since: d.silent})
		}
		if d.state == nil {
			continue
		}
		v.Faults = append(v.Faults, d.state.Faults...)
		v.Streams += d.state.Streams
		v.Queued += d.state.Queued
		if v.State != phase.Ready && !d.leaving {
			v.State, v.Version = d.state.Phase, control.Known(d.state.Build)
			v.Listen = newer(v.Listen, control.Known(d.state.Listen))
		}
	}
	return v
}

func findWorker(st *control.State, id string) *control.WorkerState {
	if st == nil {
		return nil
	}
	for i := range st.Workers {
		if st.Workers[i].ID == id {
			return &st.Workers[i]
		}
	}
	return nil
}

// acked reports whether the door obeys the newest worker set.
func (d *door) acked(set *control.WorkerSet) bool {
	return set != nil && d.state != nil && d.state.Epoch == set.Epoch && d.state.Set >= set.Version
}
