package schedule

import (
	"testing"
	"time"
)

func TestQuietest(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// An office: busy by day, quiet by night, quietest at half past four, when
	// somebody's nightly job has ended and nobody is up.
	var office Traffic
	for day := range 10 {
		for bin := range bins {
			requests := 50.0
			switch hour := bin / 4; {
			case hour >= 8 && hour < 20:
				requests = 1000
			case hour == 3:
				requests = 300 + float64(day)
			case bin == 18:
				requests = 2
			}
			office.Learn(bin, requests)
		}
	}
	f := func(tr Traffic, from string, window, takes time.Duration, want string) {
		t.Helper()
		got := tr.Quietest(at(t, from), window, takes, zone)
		if !got.Equal(at(t, want)) {
			t.Errorf("from %s within %v for %v: %s; want %s", from, window, takes, got.In(zone).Format(time.RFC3339), want)
		}
	}
	const three = "2026-11-21T03:00:00+01:00"
	f(office, three, 2*time.Hour, 10*time.Minute, "2026-11-21T04:30:00+01:00")
	f(office, three, time.Hour, 10*time.Minute, "2026-11-21T04:00:00+01:00") // the window has an end
	f(office, three, 2*time.Hour, time.Hour, "2026-11-21T04:00:00+01:00")    // an hour around it
	f(office, three, 0, time.Hour, three)
	f(office, "2026-11-21T07:30:00+01:00", 6*time.Hour, 10*time.Minute, "2026-11-21T07:30:00+01:00")
	f(office, "2026-11-21T23:30:00+01:00", 6*time.Hour, 10*time.Minute, "2026-11-22T04:30:00+01:00") // past midnight
	f(Traffic{}, three, 2*time.Hour, time.Hour, three)
	// By the clock on the wall: after the change to winter time as before it.
	f(office, "2026-10-25T03:00:00+01:00", 2*time.Hour, 10*time.Minute, "2026-10-25T04:30:00+01:00")
}

// New habits are learned within days, and one odd day changes little.
func TestTrafficLearns(t *testing.T) {
	var tr Traffic
	for range 20 {
		tr.Learn(5, 100)
	}
	if tr.Learn(5, 1000); tr.Requests[5] > 400 {
		t.Errorf("one odd day: %v", tr.Requests[5])
	}
	for range 12 {
		tr.Learn(5, 10)
	}
	if tr.Requests[5] > 20 {
		t.Errorf("after twelve days: %v", tr.Requests[5])
	}
}
