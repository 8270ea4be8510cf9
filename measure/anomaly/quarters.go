package anomaly

import (
	"time"

	"roundhouse/measure/stat"
)

// The past that a quarter of an hour is compared with.
const (
	leastDays = 4
	mostDays  = 28
	day       = 96 // quarters
)

// quarters remembers the medians of quarters of an hour, four weeks of them, and the
// minutes of the present one.
type quarters struct {
	medians map[int64]float64 // by the quarter's number since 1970
	now     int64
	minutes []float64

	expectedFor int64
	cached      float64
	known       bool
}

// number is that of a quarter of an hour.
func number(at time.Time) int64 { return at.Unix() / 900 }

// add takes a minute; one of an alarm is not remembered.
func (q *quarters) add(at time.Time, x float64, alarmed bool) {
	if n := number(at); n != q.now {
		if len(q.minutes) >= 5 {
			if q.medians == nil {
				q.medians = map[int64]float64{}
			}
			q.medians[q.now] = stat.Percentile(stat.Sorted(q.minutes), 50)
			delete(q.medians, q.now-mostDays*day)
		}
		q.now, q.minutes = n, nil
	}
	if !alarmed {
		q.minutes = append(q.minutes, x)
	}
}

// expected is the median of this quarter on former days, with its neighbours. Before
// there are four of them it is unknown: the last day alone does not tell a morning from
// an illness.
func (q *quarters) expected(at time.Time) (float64, bool) {
	n := number(at)
	if n == q.expectedFor && q.expectedFor != 0 {
		return q.cached, q.known
	}
	q.expectedFor = n
	var same []float64
	days := 0
	for back := int64(1); back <= mostDays; back++ {
		found := false
		for near := int64(-1); near <= 1; near++ {
			if m, ok := q.medians[n-back*day+near]; ok {
				same, found = append(same, m), true
			}
		}
		if found {
			days++
		}
	}
	if q.known = days >= leastDays; !q.known {
		return 0, false
	}
	q.cached, q.known = stat.Percentile(stat.Sorted(same), 50), true
	return q.cached, true
}
