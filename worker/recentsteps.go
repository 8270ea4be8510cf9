package worker

import (
	"time"

	"roundhouse/worker/api"
)

// recentSteps remembers when the latest steps began, so that a request which waited
// elsewhere ages as if it had come here at once. It earns by that no more than
// one that did: the steps that this engine computed meanwhile, and of these no
// more than api.MostWaited holds.
//
// The zero value is ready.
type recentSteps struct {
	marks [1024]mark
	n     int // ever
}

// mark is a step and when it began.
type mark struct {
	at   time.Time
	step uint64
}

// note enters that a step begins. Marks lie so far apart that all of them reach
// back by api.MostWaited.
func (p *recentSteps) note(step uint64, at time.Time) {
	if p.n > 0 && at.Sub(p.marks[(p.n-1)%len(p.marks)].at) < api.MostWaited/time.Duration(len(p.marks)) {
		return
	}
	p.marks[p.n%len(p.marks)] = mark{at, step}
	p.n++
}

// steps returns how many steps up to the given one began after a request came
// that has waited so long by now.
func (p *recentSteps) steps(step uint64, now time.Time, waited time.Duration) uint64 {
	since := now.Add(-min(max(waited, 0), api.MostWaited))
	earliest := step
	for i := p.n - 1; i >= max(0, p.n-len(p.marks)); i-- {
		m := &p.marks[i%len(p.marks)]
		if m.at.Before(since) {
			break
		}
		earliest = m.step
	}
	return step - min(earliest, step)
}
