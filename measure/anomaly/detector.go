package anomaly

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"roundhouse/measure/stat"
)

// Incident is what one worker, or a pool, shows within some minutes.
type Incident struct {
	Object  string    `json:"object"` // a pool, or pool/worker
	Since   time.Time `json:"since"`
	Signs   []Sign    `json:"signs"`
	Over    time.Time `json:"over,omitzero"`
	Missing bool      `json:"missing,omitempty"` // it says nothing any more; that is no sign

	seen time.Time // the last sign
}

// Sign is one figure that is not as it should be.
type Sign struct {
	Figure   Figure  `json:"figure"`
	Is       float64 `json:"is"`
	ShouldBe float64 `json:"should_be"`
	Against  string  `json:"against"` // peers, history
}

// String is the sign in words.
func (s Sign) String() string {
	switch s.Figure {
	case Errors:
		return fmt.Sprintf("%.1f %% of its requests fail instead of %.1f %% (by %s)", 100*s.Is, 100*s.ShouldBe, s.Against)
	case Memory:
		return fmt.Sprintf("its memory has risen to %.0f MiB from %.0f", s.Is/(1<<20), s.ShouldBe/(1<<20))
	}
	name := map[Figure]string{TTFT: "time to the first token", Gap: "time between tokens"}[s.Figure]
	return fmt.Sprintf("%s %.0f ms instead of %.0f (by %s)", name, 1000*s.Is, 1000*s.ShouldBe, s.Against)
}

// How much of the past is used.
const (
	needed      = 60 // points until a series is judged
	remembered  = 24 * 60
	recent      = 10 // minutes that are not their own baseline
	smoothed    = 7  // points whose median is the effect
	refreshed   = 60 // points after which the usual deviation is computed again
	leastPeers  = 3
	leastSpread = 0.05 // of a median: a series is never thought steadier
	together    = 5 * time.Minute
	calm        = 15 * time.Minute // without a sign: it is over
	silentAfter = 5                // minutes
	forgotten   = 60               // minutes of silence
)

// key names one series.
type key struct {
	object string
	figure Figure
}

// series is what is known of one figure of one object.
type series struct {
	past      []float64 // residuals, the newest last; without those of an alarm
	latest    []float64 // the last few of all
	sums      cusum
	alarmed   bool
	centre    float64
	deviation float64
	stale     int // points since centre and deviation were computed
	days      quarters
	quiet     int // points after a turn that count for nothing
}

// Detector watches a fleet.
type Detector struct {
	all    map[key]*series
	leaks  map[string]*leak
	faults map[string]*faults
	silent map[string]int // minutes in which a worker that had spoken said nothing
	pools  map[string]string
	procs  map[string]string
	open   map[string]*Incident
}

// New makes a detector that has seen nothing.
func New() *Detector {
	return &Detector{all: map[key]*series{}, leaks: map[string]*leak{}, faults: map[string]*faults{}, silent: map[string]int{}, pools: map[string]string{}, procs: map[string]string{}, open: map[string]*Incident{}}
}

// Add takes a minute and returns the incidents that begin with it, or get a sign more,
// and those that are over.
func (d *Detector) Add(m Minute) []Incident {
	signs := map[string][]Sign{}
	for _, id := range slices.Sorted(maps.Keys(m.Workers)) {
		w := m.Workers[id]
		turned := d.procs[id] != "" && d.procs[id] != w.Process
		d.procs[id], d.pools[id], d.silent[id] = w.Process, w.Pool, 0
		for _, f := range []Figure{TTFT, Gap} {
			if s, ok := d.worker(m, id, f, turned); ok {
				signs[id] = append(signs[id], s)
			}
		}
		if s, ok := d.errors(m, id); ok {
			signs[id] = append(signs[id], s)
		}
		if s, ok := d.memory(m, id, turned); ok {
			signs[id] = append(signs[id], s)
		}
	}
	for _, pool := range d.poolNames() {
		for _, f := range []Figure{TTFT, Gap} {
			if s, ok := d.pool(m, pool, f); ok {
				signs[pool] = append(signs[pool], s)
			}
		}
	}
	for id := range d.pools {
		if _, said := m.Workers[id]; said {
			continue
		}
		if d.silent[id]++; d.silent[id] > forgotten {
			d.Forget(id)
		}
	}
	return d.incidents(m.At, signs)
}

func (d *Detector) poolNames() []string {
	names := map[string]bool{}
	for _, p := range d.pools {
		names[p] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Forget drops a worker that is no more.
func (d *Detector) Forget(id string) {
	maps.DeleteFunc(d.all, func(k key, _ *series) bool { return k.object == id })
	delete(d.leaks, id)
	delete(d.faults, id)
	delete(d.silent, id)
	delete(d.pools, id)
	delete(d.procs, id)
	delete(d.open, id)
}

// of returns a series, and makes it where there is none.
func (d *Detector) of(object string, f Figure) *series {
	k := key{object, f}
	if d.all[k] == nil {
		d.all[k] = &series{}
	}
	return d.all[k]
}

// peers is the median of a figure over the other workers of a pool in a minute.
func peers(m Minute, id string, f Figure) (median float64, n int) {
	var all []float64
	for other, w := range m.Workers {
		if other != id && w.Pool == m.Workers[id].Pool {
			if x, ok := point(f, w.Values[f]); ok {
				all = append(all, x)
			}
		}
	}
	return stat.Percentile(stat.Sorted(all), 50), len(all)
}

// worker judges one figure of one worker: against its peers, else against its past.
func (d *Detector) worker(m Minute, id string, f Figure, turned bool) (Sign, bool) {
	x, ok := point(f, m.Workers[id].Values[f])
	s := d.of(id, f)
	if turned {
		s.turn()
	}
	if !ok {
		return Sign{}, false
	}
	if d.size(m.Workers[id].Pool) <= leastPeers {
		return s.against(m.At, f, x)
	}
	base, n := peers(m, id, f)
	if n < leastPeers {
		return Sign{}, false // there are few requests: no minute to judge by
	}
	return s.judge(f, x, base, "peers")
}

// size is how many workers a pool has.
func (d *Detector) size(pool string) (n int) {
	for _, p := range d.pools {
		if p == pool {
			n++
		}
	}
	return n
}

// against judges a point by the past of its series.
func (s *series) against(at time.Time, f Figure, x float64) (Sign, bool) {
	base, ok := s.days.expected(at)
	s.days.add(at, x, s.alarmed)
	if !ok {
		return Sign{}, false
	}
	return s.judge(f, x, base, "history")
}

// pool judges one figure of a whole pool against its past.
func (d *Detector) pool(m Minute, pool string, f Figure) (Sign, bool) {
	sum, n := 0.0, 0
	for _, w := range m.Workers {
		if v := w.Values[f]; w.Pool == pool && v.N > 0 && !math.IsNaN(v.Mean) {
			sum, n = sum+v.Mean*float64(v.N), n+v.N
		}
	}
	x, ok := point(f, Value{sum / float64(max(1, n)), n})
	if !ok {
		return Sign{}, false
	}
	return d.of(pool, f).against(m.At, f, x)
}

// turn forgets what was summed up: the next minutes are those of a cold cache.
func (s *series) turn() { s.sums, s.alarmed, s.quiet = cusum{}, false, recent }

// judge takes a point and what it should be, and reports whether it alarms.
func (s *series) judge(f Figure, x, base float64, against string) (Sign, bool) {
	if s.quiet > 0 {
		s.quiet--
		return Sign{}, false
	}
	residual := x - base
	if s.stale--; s.stale < 0 && len(s.past) >= needed+recent {
		s.centre, s.deviation = usual(s.past[:len(s.past)-recent], leastSpread)
		s.stale = refreshed
	}
	s.latest = append(s.latest[max(0, len(s.latest)-smoothed+1):], residual)
	if s.deviation > 0 {
		s.sums.add((residual - s.centre) / s.deviation)
	}
	should, effect := base+s.centre, base+stat.Percentile(stat.Sorted(s.latest), 50)
	if s.alarmed {
		s.alarmed = s.sums.beyond(0.5)
	} else if s.alarmed = s.sums.beyond(1) && matters(f, effect, should); s.alarmed {
		s.past = s.past[:max(0, len(s.past)-recent)] // what led to the alarm is not usual
	}
	if s.alarmed {
		return Sign{Figure: f, Is: math.Exp(effect), ShouldBe: math.Exp(should), Against: against}, true
	}
	if s.past = append(s.past, residual); len(s.past) > remembered+refreshed {
		s.past = slices.Delete(s.past, 0, refreshed)
	}
	return Sign{}, false
}

// errors judges a worker's failures by its peers'.
func (d *Detector) errors(m Minute, id string) (Sign, bool) {
	v := m.Workers[id].Values[Errors]
	bad, n := 0.0, 0
	for other, w := range m.Workers {
		if o := w.Values[Errors]; other != id && w.Pool == m.Workers[id].Pool && o.N > 0 {
			bad, n = bad+o.Mean*float64(o.N), n+o.N
		}
	}
	x := d.faults[id]
	if x == nil {
		x = &faults{}
		d.faults[id] = x
	}
	return x.add(v, bad, n)
}

// memory judges a worker's memory.
func (d *Detector) memory(m Minute, id string, turned bool) (Sign, bool) {
	x, ok := point(Memory, m.Workers[id].Values[Memory])
	l := d.leaks[id]
	if l == nil {
		l = &leak{}
		d.leaks[id] = l
	}
	if turned {
		l.begin()
	}
	if !ok {
		return Sign{}, false
	}
	base, n := peers(m, id, Memory)
	relative := x
	if n >= leastPeers {
		relative = x - base
	}
	if !l.add(x, relative, n >= leastPeers) {
		return Sign{}, false
	}
	return Sign{Figure: Memory, Is: math.Exp(x), ShouldBe: math.Exp(x - 2*(l.mean-l.first)), Against: "history"}, true
}

// incidents groups signs by who shows them.
func (d *Detector) incidents(at time.Time, signs map[string][]Sign) (told []Incident) {
	for id, minutes := range d.silent {
		if minutes == silentAfter && d.open[id] == nil {
			d.open[id] = &Incident{Object: id, Since: at, Missing: true}
			told = append(told, *d.open[id])
		}
	}
	for _, object := range slices.Sorted(maps.Keys(signs)) {
		o := d.open[object]
		switch {
		case o == nil || o.Missing:
			d.open[object] = &Incident{Object: object, Since: at, Signs: signs[object]}
			told = append(told, *d.open[object])
		case len(signs[object]) > len(o.Signs) && at.Sub(o.Since) > together:
			o.Signs = signs[object]
			told = append(told, *o)
		case len(signs[object]) >= len(o.Signs):
			o.Signs = signs[object]
		}
	}
	for object, o := range d.open {
		switch {
		case len(signs[object]) > 0:
			o.seen = at
		case o.Missing && d.silent[object] == 0, !o.Missing && at.Sub(o.seen) >= calm:
			o.Over = at
			told = append(told, *o)
			delete(d.open, object)
		}
	}
	slices.SortFunc(told, func(a, b Incident) int { return cmp.Compare(a.Object, b.Object) })
	return told
}

// Open are the incidents that are not over, by object.
func (d *Detector) Open() []Incident {
	var all []Incident
	for _, object := range slices.Sorted(maps.Keys(d.open)) {
		all = append(all, *d.open[object])
	}
	return all
}
