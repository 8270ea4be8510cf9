package supervisor

import (
	"time"

	"roundhouse/supervisor/driver"
)

// member is all that is known of one worker beside its place in the intent. It is
// forgotten as a whole, by fleet.forget.
type member struct {
	id          string
	instance    driver.Instance // as its driver found it last
	found       bool            // its driver did
	interrupted uint64          // the generation that ended while its driver was away; 0: none
	probe       *probe          // nil: it is not asked for its health
	act         uint64          // the number of the latest act under way; 0: none
	launched    uint64          // the latest generation whose start has returned
	failure     failure
	progress    progress
	doubt       *doubt // nil: there is none
	release     release
	wall        shownDeadline
	served      int64 // requests, as the doors told last; it falls when a generation begins
	counted     bool  // served was told
}

// failure is how the last act on a generation failed.
type failure struct {
	generation uint64
	why        string
	away       bool // its driver did not answer
}

// fleet is every worker that is configured, remembered, found or acted on.
type fleet struct {
	members map[string]*member // by pool/name
	acts    uint64             // how many were begun
	idle    chan struct{}      // closed once nothing is being done; nil: nobody waits for that
}

func newFleet() fleet { return fleet{members: map[string]*member{}} }

// at returns what is known of a worker, and begins to know it.
func (f *fleet) at(id string) *member {
	m := f.members[id]
	if m == nil {
		m = &member{id: id}
		f.members[id] = m
	}
	return m
}

// of returns what is known of a worker to read; nothing, if it is not known.
func (f *fleet) of(id string) member {
	if m := f.members[id]; m != nil {
		return *m
	}
	return member{id: id}
}

// take puts what the drivers have found in the place of what they found before.
func (f *fleet) take(runners map[string]*runner) {
	for _, m := range f.members {
		m.instance, m.found = driver.Instance{}, false
	}
	for _, r := range runners {
		for _, i := range r.instances {
			m := f.at(i.ID)
			m.instance, m.found = i, true
		}
	}
}

// begin numbers an act on a worker, which is the latest from now on.
func (f *fleet) begin(id string, generation uint64) uint64 {
	f.acts++
	m := f.at(id)
	m.act = f.acts
	if m.failure.generation != generation {
		m.failure = failure{}
	}
	return f.acts
}

// end notes that the act of that number on a worker has ended. Another may be under way
// on it by then, a stop behind a warming, which is not ended by this.
func (f *fleet) end(id string, number uint64) *member {
	m := f.at(id)
	if m.act == number {
		m.act = 0
	}
	if f.idle != nil && f.acting() == 0 {
		close(f.idle)
		f.idle = nil
	}
	return m
}

// quiet returns a channel that is closed once nothing is being done on any worker.
func (f *fleet) quiet() <-chan struct{} {
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	idle := f.idle
	if f.acting() == 0 {
		close(idle)
		f.idle = nil
	}
	return idle
}

// acting counts the workers on which something is being done.
func (f *fleet) acting() (n int) {
	for _, m := range f.members {
		if m.act != 0 {
			n++
		}
	}
	return n
}

// forget lets go of every worker that is not wanted, is not there, and on which nothing
// is being done.
func (f *fleet) forget(wanted func(id string) bool) {
	for id, m := range f.members {
		if m.found || m.act != 0 || wanted(id) {
			continue
		}
		if m.probe != nil {
			m.probe.cancel()
		}
		if m.doubt != nil {
			m.doubt.cancel()
		}
		delete(f.members, id)
	}
}

// shownDeadline is a deadline on both clocks, so that a set does not change because a
// clock was read twice.
type shownDeadline struct {
	steady time.Time
	shown  time.Time
}
