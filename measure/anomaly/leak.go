package anomaly

import "math"

// The leak detector, on means of five minutes after a process's first hour. slack is the
// part of a rise that is taken for noise, and bound how much more must add up: a rise of
// 1 % an hour needs about four hours.
const (
	leakEvery  = 5  // minutes
	leakWarm   = 60 // minutes
	leakSlack  = 0.002
	leakBound  = 0.25
	leakEffect = 0.03
)

// leak is Page–Hinkley's test for a mean that rises, on the logarithm of a process's
// memory less that of its peers.
type leak struct {
	age             int // minutes of the process
	sum             float64
	n               int // minutes in sum
	first           float64
	seen            int // means
	mean            float64
	cusum, lowest   float64
	latest, highest float64 // memory itself, and the most of former processes
	former          float64
	compared        bool // with peers, in this process
}

// begin starts anew with a new process.
func (l *leak) begin() {
	*l = leak{former: math.Max(l.former, l.highest)}
}

// add takes a minute: the memory's logarithm, and the same less the peers' median where
// there are peers. It reports whether memory leaks. The two are never mixed: the first
// minute with peers begins the sums anew, and one without them, in which a peer turned or
// was not read, adds nothing to those of a worker that has had them.
func (l *leak) add(x, relative float64, peers bool) bool {
	l.age++
	switch {
	case peers && !l.compared:
		*l = leak{age: l.age, former: l.former, highest: l.highest, compared: true}
	case !peers && l.compared:
		l.latest, l.highest = x, math.Max(l.highest, x)
		return l.alarm(true)
	}
	l.latest = x
	if l.highest == 0 || x > l.highest {
		l.highest = x
	}
	if l.age <= leakWarm {
		return false
	}
	l.sum += relative
	if l.n++; l.n < leakEvery {
		return l.alarm(peers)
	}
	v := l.sum / float64(l.n)
	l.sum, l.n = 0, 0
	if l.seen == 0 {
		l.first = v
	}
	l.seen++
	l.mean += (v - l.mean) / float64(l.seen)
	l.cusum += v - l.mean - leakSlack
	l.lowest = math.Min(l.lowest, l.cusum)
	return l.alarm(peers)
}

// alarm reports whether enough has added up. A worker without peers breathes with its
// load: only memory beyond what a former process ever had is a leak there.
func (l *leak) alarm(peers bool) bool {
	if l.cusum-l.lowest < leakBound || 2*(l.mean-l.first) < leakEffect {
		return false
	}
	return peers || l.former != 0 && l.latest > l.former+leakEffect
}
