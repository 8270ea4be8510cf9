package schedule

import (
	"fmt"
	"strings"
	"time"
)

// window is a stretch of certain weekdays. One that ends before it begins
// goes on into the next day; its days are those on which it begins.
type window struct {
	days       [7]bool
	begin, end int // minutes of the day
}

var weekdays = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseWindow reads "Mon-Fri 08:00-20:00", "Sat,Sun 00:00-24:00" or, for every
// day, "08:00-20:00".
func parseWindow(text string) (window, error) {
	var w window
	fail := func() (window, error) {
		return window{}, fmt.Errorf("blackout %q: write days and times, e.g. \"Mon-Fri 08:00-20:00\"", text)
	}
	parts := strings.Fields(text)
	switch len(parts) {
	case 1:
		w.days = [7]bool{true, true, true, true, true, true, true}
	case 2:
		for _, part := range strings.Split(parts[0], ",") {
			from, to, isRange := strings.Cut(part, "-")
			if !isRange {
				to = from
			}
			a, b := weekday(from), weekday(to)
			if a < 0 || b < 0 {
				return fail()
			}
			for d := a; ; d = (d + 1) % 7 {
				w.days[d] = true
				if d == b {
					break
				}
			}
		}
	default:
		return fail()
	}
	from, to, ok := strings.Cut(parts[len(parts)-1], "-")
	if !ok {
		return fail()
	}
	if w.begin, ok = minute(from); !ok || w.begin == 24*60 {
		return fail()
	}
	if w.end, ok = minute(to); !ok || w.end == w.begin {
		return fail()
	}
	return w, nil
}

func weekday(text string) int {
	for i, name := range weekdays {
		if strings.EqualFold(text, name) {
			return i
		}
	}
	return -1
}

// minute reads "HH:MM" up to "24:00".
func minute(text string) (int, bool) {
	if len(text) != 5 || text[2] != ':' {
		return 0, false
	}
	for _, i := range []int{0, 1, 3, 4} {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	h := int(text[0]-'0')*10 + int(text[1]-'0')
	m := int(text[3]-'0')*10 + int(text[4]-'0')
	if m > 59 || h*60+m > 24*60 {
		return 0, false
	}
	return h*60 + m, true
}

// holds says whether the local time t lies in the window.
func (w window) holds(t time.Time) bool {
	day, at := int(t.Weekday()), t.Hour()*60+t.Minute()
	if w.begin < w.end {
		return w.days[day] && at >= w.begin && at < w.end
	}
	return w.days[day] && at >= w.begin || w.days[(day+6)%7] && at < w.end
}

// Blocked says whether no run and no turn may begin at t.
func (p *Plan) Blocked(t time.Time) bool {
	if p == nil {
		return false
	}
	for _, w := range p.blackout {
		if w.holds(t.In(p.zone)) {
			return true
		}
	}
	return false
}
