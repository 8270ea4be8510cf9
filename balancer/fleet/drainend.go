package fleet

import "time"

// drainEnd is when a drain is over. It is said by the wall clock, and kept by the door's
// own: a machine whose clock is set meanwhile neither cuts a drain short nor draws it out.
type drainEnd struct {
	said *time.Time // nil: nobody has
	at   int64      // by the door's clock
}

// take takes what a worker set says; one that says the same again changes nothing.
func (e *drainEnd) take(deadline *time.Time, wall time.Time, now int64) {
	switch {
	case deadline == nil:
		*e = drainEnd{}
	case e.said == nil || !deadline.Equal(*e.said):
		*e = drainEnd{deadline, now + int64(deadline.Sub(wall))}
	}
}

// over reports whether it is.
func (e *drainEnd) over(now int64) bool { return e.said != nil && now > e.at }
