package configs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Window is a time of the week in which no turn begins: "Mon-Fri 08:00-20:00",
// "Sat,Sun 00:00-24:00", or "22:00-06:00" for every day. One that ends before
// it begins goes past midnight, into the day after.
type Window struct {
	days       [7]bool // by time.Weekday: the days on which it begins
	start, end int     // minutes of the day; end may be 1440
}

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseWindow reads a Window.
func ParseWindow(s string) (Window, error) {
	bad := fmt.Errorf(`%q is not a time of the week; write one such as "Mon-Fri 08:00-20:00" or "22:00-06:00"`, s)
	var w Window
	fields := strings.Fields(s)
	switch len(fields) {
	case 1:
		w.days = [7]bool{true, true, true, true, true, true, true}
	case 2:
		for _, part := range strings.Split(fields[0], ",") {
			first, last, isRange := strings.Cut(strings.ToLower(part), "-")
			if !isRange {
				last = first
			}
			from, to := slices.Index(dayNames, first), slices.Index(dayNames, last)
			if from < 0 || to < 0 {
				return Window{}, bad
			}
			for day := from; ; day = (day + 1) % 7 {
				w.days[day] = true
				if day == to {
					break
				}
			}
		}
	default:
		return Window{}, bad
	}
	start, end, ok := strings.Cut(fields[len(fields)-1], "-")
	var okStart, okEnd bool
	w.start, okStart = minuteOfDay(start)
	w.end, okEnd = minuteOfDay(end)
	if !ok || !okStart || !okEnd || w.start == w.end || w.start == 24*60 {
		return Window{}, bad
	}
	return w, nil
}

// minuteOfDay reads "08:00"; "24:00" is the end of the day.
func minuteOfDay(s string) (int, bool) {
	if s == "24:00" {
		return 24 * 60, true
	}
	t, err := time.Parse("15:04", s)
	return t.Hour()*60 + t.Minute(), err == nil && len(s) == 5
}

// Contains reports whether t, read in its own location, lies in the window.
func (w Window) Contains(t time.Time) bool {
	day, minute := t.Weekday(), t.Hour()*60+t.Minute()
	if w.start < w.end {
		return w.days[day] && w.start <= minute && minute < w.end
	}
	yesterday := (day + 6) % 7
	return w.days[day] && minute >= w.start || w.days[yesterday] && minute < w.end
}
