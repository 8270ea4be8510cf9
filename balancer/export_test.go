package balancer

import (
	"time"

	"roundhouse/balancer/control"
)

// Hasten makes the door look around more often than every ten seconds, and take
// a worker for hung sooner. Call it before Run.
func (d *Door) Hasten(step, hungAfter time.Duration) { d.step, d.fleet.HungAfter = step, hungAfter }

// WriteWithin bounds one write to a client. Call it before Run.
func (d *Door) WriteWithin(span time.Duration) { d.writeWithin = span }

// MoveWithin bounds one message to the next door. Call it before Run.
func (d *Door) MoveWithin(span time.Duration) { d.moveWithin = span }

// Decision explains the choice made for a request.
func (d *Door) Decision(id string) (control.Decision, bool) { return d.why.Find(id) }

// EverySecond does now what is due once a second.
func (d *Door) EverySecond() { d.everySecond(d.current()) }

// ThroughFasthttp makes fasthttp read every request, also those that the door
// would read itself.
func (d *Door) ThroughFasthttp(all bool) { d.fasthttpOnly = all }

// LookAtFiles looks at the certificate's files now.
func (d *Door) LookAtFiles() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recertify()
}

// PluginWithin bounds the wait for a plugin. Call it before sets are taken.
func (d *Door) PluginWithin(span time.Duration) { d.pluginWithin = span }

// CutWithin bounds how long requests that are cut have to tell their clients.
func (d *Door) CutWithin(span time.Duration) { d.cutWithin = span }

// CutAll ends what is in flight, as at the end of a drain.
func (d *Door) CutAll() { d.cutAll() }

// Held is the bytes that are booked of requests and answers.
func (d *Door) Held() int64 { return d.memory.Over(0) + d.memory.Limit.Load() }
