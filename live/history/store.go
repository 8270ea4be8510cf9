package history

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// The two distances of points, and how long each is kept.
const (
	Step      = 5 * time.Second
	perMinute = 12 // steps
	fineKept  = 24 * 3600 / 5
	coarse30  = 30 * 24 * 60
)

// What is kept of single workers at least, and how far each cut goes, where the store is
// full.
const (
	leastFine   = 3600 / 5
	leastCoarse = 24 * 60
	cutFine     = 3600 / 5
	cutCoarse   = 24 * 60
	mostSeries  = 20000        // of single workers
	goneAfter   = 2 * 3600 / 5 // without a figure: its worker is no more
)

// Budget is how much memory a store takes, about, unless it is told another.
const Budget = 64 << 20

// Key names a series: of a pool, or of a worker (pool/name) where that is given.
type Key struct{ Pool, Worker, Name string }

// kept is how many points of each resolution are kept.
type kept struct{ fine, coarse int64 }

// Store is all series.
type Store struct {
	mu      sync.RWMutex
	budget  int
	size    int
	series  map[Key]*series
	workers int  // how many of the series are of single workers
	few     kept // of those
	begins  time.Time
}

// New makes a store that takes about so many bytes.
func New(budget int) *Store {
	return &Store{budget: budget, series: map[Key]*series{}, few: kept{fineKept, coarse30}}
}

func indexOf(t time.Time) int64 { return t.Unix() / int64(Step/time.Second) }

// seriesSize is about what a series takes beside its blocks.
const seriesSize = 256

// Add takes what was known in the step that a time lies in. A figure that is NaN was not
// known.
func (s *Store) Add(at time.Time, figures map[Key]float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begins.IsZero() {
		s.begins = at.Truncate(Step)
	}
	index := indexOf(at)
	for k, v := range figures {
		x := s.series[k]
		if x == nil {
			if math.IsNaN(v) || k.Worker != "" && s.workers >= mostSeries {
				continue
			}
			x = &series{}
			s.series[k] = x
			s.size += seriesSize
			if k.Worker != "" {
				s.workers++
			}
		}
		if x.fine.next > index {
			continue // the clock was set back: a step is told once
		}
		keep := kept{fineKept, coarse30}
		if k.Worker != "" {
			keep = s.few
		}
		s.size += x.add(index, v, keep)
	}
	if s.size > s.budget {
		s.shrink(index)
	}
}

// shrink makes room: of workers that are no more first, then of the oldest figures of
// those that are, the fine ones before the coarse.
func (s *Store) shrink(index int64) {
	for k, x := range s.series {
		if k.Worker != "" && index-x.fine.next > goneAfter {
			s.size -= x.size() + seriesSize
			delete(s.series, k)
			s.workers--
		}
	}
	for s.size > s.budget && (s.few.fine > leastFine || s.few.coarse > leastCoarse) {
		if s.few.fine > leastFine {
			s.few.fine = max(leastFine, s.few.fine-cutFine)
		} else {
			s.few.coarse = max(leastCoarse, s.few.coarse-cutCoarse)
		}
		for k, x := range s.series {
			if k.Worker != "" {
				s.size += x.fine.trim(s.few.fine) + x.coarse.trim(s.few.coarse)
			}
		}
	}
}

// Size is about how much memory the store takes.
func (s *Store) Size() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

// Begins is since when there is any figure; zero: there is none.
func (s *Store) Begins() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.begins
}

// Keys are the series that a choice takes, in order.
func (s *Store) Keys(take func(Key) bool) []Key {
	s.mu.RLock()
	var out []Key
	for k := range s.series {
		if take(k) {
			out = append(out, k)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(out, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Window is a stretch of time in equal parts.
type Window struct {
	From time.Time
	Step time.Duration
	N    int
}

// WindowOf is the last so long before a time in so many parts at most: whole steps, or
// whole minutes where a part is as long as that.
func WindowOf(now time.Time, back time.Duration, most int) Window {
	back = min(max(back, Step), 30*24*time.Hour)
	step := max(Step, (back+time.Duration(most)-1)/time.Duration(most))
	unit := Step
	if step > Step*perMinute/2 || back > 24*time.Hour {
		unit = time.Minute
	}
	step = (step + unit - 1).Truncate(unit)
	end := now.Truncate(unit)
	n := int(back / step)
	return Window{From: end.Add(-time.Duration(n) * step), Step: step, N: max(n, 1)}
}

// Read is a series over a window: the mean of what was known in each part, NaN where
// nothing was; and since when there is any of it, by the resolution that was read.
func (s *Store) Read(k Key, w Window) (values []float64, begins time.Time) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	values = make([]float64, w.N)
	x := s.series[k]
	if x == nil {
		for i := range values {
			values[i] = math.NaN()
		}
		return values, time.Time{}
	}
	l, unit := &x.fine, Step
	// The fine ones, unless the coarse go back to times that they do not.
	if w.Step >= time.Minute && len(x.coarse.blocks) > 0 && x.fine.first > indexOf(w.From) && x.coarse.first*perMinute < x.fine.first {
		l, unit = &x.coarse, time.Minute
	}
	per := int64(w.Step / unit)
	at := w.From.Unix() / int64(unit/time.Second)
	for i := range values {
		values[i] = l.mean(at+int64(i)*per, per)
	}
	if len(l.blocks) > 0 {
		begins = time.Unix(l.first*int64(unit/time.Second), 0).UTC()
	}
	return values, begins
}
