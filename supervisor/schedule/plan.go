package schedule

import (
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"roundhouse/configs"
)

// Late is how much after its time a run may begin without being a missed one.
const Late = 5 * time.Minute

// farAhead is how far the record of the last run may lie in the future before
// it is taken for the trace of a wrong clock and dropped.
const farAhead = 24 * time.Hour

// Spec is what a configuration says about a pool's schedule.
type Spec struct {
	Cron     string        // five fields; empty: never
	Timezone string        // IANA name; empty: the machine's
	Missed   string        // "once" or "skip"
	Jitter   time.Duration // a run begins up to this much later
	Blackout []string      // "Mon-Fri 08:00-20:00": no run and no turn begins here
	Salt     string        // the pool's name, so that pools differ in their jitter
}

// Plan is a parsed Spec. A nil Plan never runs and is never blacked out.
type Plan struct {
	spec     Spec
	fields   cron.Schedule // nil: by hand only
	zone     *time.Location
	blackout []configs.Window
	// answer is named's last one: all times from from on, up to run, have it.
	answer atomic.Pointer[answer]
}

type answer struct{ from, run time.Time }

// Of is the plan of a pool's rotation.
func Of(pool string, r configs.Rotation) (*Plan, error) {
	return Parse(Spec{Cron: r.Schedule, Timezone: r.Timezone, Missed: r.Missed, Jitter: r.Jitter.Std(), Blackout: r.Blackout, Salt: pool})
}

// Parse reads a Spec. Its errors name the field and what would be right.
func Parse(spec Spec) (*Plan, error) {
	p := &Plan{spec: spec, zone: time.Local}
	if spec.Timezone != "" {
		zone, err := time.LoadLocation(spec.Timezone)
		if err != nil {
			return nil, fmt.Errorf("timezone %q is not known; use an IANA name such as \"Europe/Berlin\"", spec.Timezone)
		}
		p.zone = zone
	}
	for _, text := range spec.Blackout {
		w, err := configs.ParseWindow(text)
		if err != nil {
			return nil, fmt.Errorf("blackout: %w", err)
		}
		p.blackout = append(p.blackout, w)
	}
	if spec.Cron == "" {
		return p, nil
	}
	fields, err := configs.ParseSchedule(spec.Cron)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	if fields.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("schedule %q: no day of the next five years fits", spec.Cron)
	}
	p.fields = fields
	return p, nil
}

// Next returns the first run after t, with its jitter, or the zero time.
func (p *Plan) Next(t time.Time) time.Time {
	run := p.named(t)
	if run.IsZero() {
		return run
	}
	return run.Add(p.offset(run))
}

// named returns the first run after t as the schedule names it, without jitter.
func (p *Plan) named(t time.Time) time.Time {
	if p == nil || p.fields == nil {
		return time.Time{}
	}
	if a := p.answer.Load(); a != nil && !t.Before(a.from) && t.Before(a.run) {
		return a.run
	}
	// The fields are asked about a clock that knows no zone, whose every day
	// has 24 hours; its answers are then found on the real one.
	local := t.In(p.zone)
	wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), time.UTC)
	for range 4096 {
		if wall = p.fields.Next(wall); wall.IsZero() {
			return wall
		}
		if real := onWall(wall, p.zone); real.After(t) {
			p.answer.Store(&answer{t, real})
			return real
		}
	}
	return time.Time{}
}

// onWall returns the first instant at which the clock of zone shows wall, or
// the instant of the change that leaves wall out.
func onWall(wall time.Time, zone *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	start, end := t.ZoneBounds()
	if t.Hour() != wall.Hour() || t.Minute() != wall.Minute() {
		// In a gap time.Date answers from one side of the change or the other.
		if !start.IsZero() && t.Sub(start) < 3*time.Hour {
			return start
		}
		return end
	}
	if !start.IsZero() {
		_, now := t.Zone()
		_, before := start.Add(-time.Second).Zone()
		if first := t.Add(-time.Duration(before-now) * time.Second); before > now && first.Before(start) {
			return first
		}
	}
	return t
}

// offset is a run's jitter: the same for every supervisor that asks.
func (p *Plan) offset(run time.Time) time.Duration {
	if p.spec.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", p.spec.Salt, run.Unix())
	return time.Duration(h.Sum64() % uint64(p.spec.Jitter))
}

// Verdict is what Due says.
type Verdict struct {
	Run    bool      // begin now
	Missed int       // runs whose time passed without one
	Last   time.Time // to be passed to the next call
	Late   bool      // the run that begins is one that was missed
}

// Due reports whether a run is due at now, when last is the Last of the verdict
// before (the zero time: there was none, and nothing before now counts).
// Runs that fall into a blackout come at its end, together as one.
func (p *Plan) Due(last, now time.Time) Verdict { return p.DueWith(last, now, nil) }

// DueWith is Due where offset says how much after its named time a run begins,
// instead of chance. Nil: by chance, within the jitter.
func (p *Plan) DueWith(last, now time.Time, offset func(run time.Time) time.Duration) Verdict {
	if p == nil || p.fields == nil || last.IsZero() || last.Sub(now) > farAhead {
		return Verdict{Last: now}
	}
	if p.Blocked(now) {
		return Verdict{Last: last}
	}
	if offset == nil {
		offset = p.offset
	}
	v := Verdict{Last: last}
	var latest time.Time
	for n := 0; ; n++ {
		run := p.named(v.Last)
		if run.IsZero() || run.Add(offset(run)).After(now) {
			break
		}
		v.Last, latest = run, run.Add(offset(run))
		v.Missed++
		if n == 1000 { // a year of hours asleep: what is older does not matter
			v.Last = now
			break
		}
	}
	if v.Missed == 0 {
		return v
	}
	v.Missed-- // the latest is judged by itself
	v.Late = now.Sub(latest) > Late && !p.Blocked(latest)
	if v.Late && p.spec.Missed == "skip" {
		v.Missed++
		return v
	}
	v.Run = true
	return v
}

// Named is the first run after t as the schedule names it, without jitter.
func (p *Plan) Named(t time.Time) time.Time { return p.named(t) }

// Jitter is how much later than its named time a run may begin.
func (p *Plan) Jitter() time.Duration { return p.spec.Jitter }

// Zone is where the plan's clock hangs.
func (p *Plan) Zone() *time.Location { return p.zone }

// Blocked reports whether no run and no turn may begin at t.
func (p *Plan) Blocked(t time.Time) bool {
	if p == nil {
		return false
	}
	for _, w := range p.blackout {
		if w.Contains(t.In(p.zone)) {
			return true
		}
	}
	return false
}
