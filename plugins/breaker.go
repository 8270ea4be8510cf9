package plugins

import "time"

// breaker leaves a plugin alone after failures in a row. Half open it admits one
// call; that call's outcome closes it or opens it again.
type breaker struct {
	limit int           // failures in a row that open it
	open  time.Duration // for how long

	failures int
	until    time.Time // open until then; zero: closed
	probing  bool      // half open, and the one call is under way
}

func (b *breaker) reset() { b.failures, b.until, b.probing = 0, time.Time{}, false }

// allow reports whether a call may be made now. An allowed call must settle.
func (b *breaker) allow(now time.Time) bool {
	switch {
	case b.until.IsZero():
		return true
	case now.Before(b.until) || b.probing:
		return false
	}
	b.probing = true
	return true
}

func (b *breaker) settle(ok bool, now time.Time) {
	if ok {
		b.reset()
		return
	}
	b.failures++
	b.probing = false
	if b.failures >= b.limit {
		b.until = now.Add(b.open)
	}
}

// state is what people are told.
func (b *breaker) state(now time.Time) string {
	switch {
	case b.until.IsZero():
		return "closed"
	case now.Before(b.until):
		return "open"
	}
	return "half open"
}
