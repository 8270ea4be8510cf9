package schedule

import "time"

// bins is how many parts of a day Traffic keeps apart, a quarter of an hour each.
const bins = 96

// Bin is the length of one part.
const Bin = 24 * time.Hour / bins

// Traffic is how many requests a pool has at which time of the day, as learned
// from the days before. The zero value has learned nothing.
type Traffic struct {
	Requests [bins]float64 `json:"requests"`
	Days     [bins]uint8   `json:"days"` // that each part was seen
}

// half is how much of what is known a new day replaces, once there are a few.
const half = 0.3

// BinOf names the part of the day that t lies in, by its own clock.
func BinOf(t time.Time) int { return (t.Hour()*60 + t.Minute()) / int(Bin/time.Minute) }

// Learn takes in that a part of a day had so many requests.
func (tr *Traffic) Learn(bin int, requests float64) {
	// The first days count alike; later ones fade.
	weight := max(1/float64(tr.Days[bin]+1), half)
	tr.Requests[bin] += weight * (requests - tr.Requests[bin])
	if tr.Days[bin] < 255 {
		tr.Days[bin]++
	}
}

// expected is what a part of the day has; one that was never seen has what the
// others have on average.
func (tr *Traffic) expected(bin int) float64 {
	if tr.Days[bin] > 0 {
		return tr.Requests[bin]
	}
	sum, n := 0.0, 0
	for i, days := range tr.Days {
		if days > 0 {
			sum, n = sum+tr.Requests[i], n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// Quietest is when something that takes so long meets the fewest requests,
// beginning from from on and within the window after it: the earliest such
// time, and from itself where nothing is known.
func (tr *Traffic) Quietest(from time.Time, window, takes time.Duration, zone *time.Location) time.Time {
	const step = 5 * time.Minute
	best, least := from, -1.0
	for at := from; !at.After(from.Add(window)); at = at.Add(step) {
		load := 0.0
		for t := at; t.Before(at.Add(takes)); t = t.Add(step) {
			load += tr.expected(BinOf(t.In(zone))) / float64(Bin/step)
		}
		if least < 0 || load < least-1e-9 {
			best, least = at, load
		}
	}
	return best
}
