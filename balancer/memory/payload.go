package memory

import (
	"sync/atomic"

	"roundhouse/balancer/conn"
)

// Payload is a request's body with the memory that it lies in. Once a stream has
// begun it is a spare, which other goroutines may give up.
type Payload struct {
	Body   []byte
	Lent   *[]byte // of buffers, where body lies in one
	Booked int64   // memory booked for body
	Kept   int64   // and for what the answer keeps beside it
	Spare  atomic.Pointer[Spare]
}

// Spare is a request's body after its first event was relayed: it is kept for
// the case that the stream must go on at another worker, and goes first when
// the door's memory runs short.
type Spare struct {
	body   []byte
	lent   *[]byte
	Booked int64
}

// free gives a spare's memory back. Who calls it has taken the spare out of its
// payload.
func (s *Spare) free(m *Bound) {
	m.Give(s.Booked)
	conn.GiveBody(s.lent)
}

// KeepSpare makes the body a spare.
func (p *Payload) KeepSpare(m *Bound) {
	s := &Spare{p.Body, p.Lent, p.Booked}
	p.Body, p.Lent, p.Booked = nil, nil, 0
	m.Spares.Add(s.Booked)
	p.Spare.Store(s)
}

// TakeBack makes the spare the body again. It reports whether there is a body:
// none, where the memory was needed for something else.
func (p *Payload) TakeBack(m *Bound) bool {
	if s := p.Spare.Swap(nil); s != nil {
		m.Spares.Add(-s.Booked)
		p.Body, p.Lent, p.Booked = s.body, s.lent, s.Booked
	}
	return p.Body != nil
}

// Steal frees the spare that s is, unless the exchange has ended or needs its
// body by now. It reports whether it did.
func (p *Payload) Steal(s *Spare, m *Bound) bool {
	if !p.Spare.CompareAndSwap(s, nil) {
		return false
	}
	m.Spares.Add(-s.Booked)
	s.free(m)
	return true
}

// GiveBack returns all memory.
func (p *Payload) GiveBack(m *Bound) {
	p.TakeBack(m)
	m.Give(p.Booked + p.Kept)
	conn.GiveBody(p.Lent)
	p.Body, p.Lent, p.Booked, p.Kept = nil, nil, 0, 0
}

// Lost reports whether the body is there no more, neither as it came nor as a spare.
func (p *Payload) Lost() bool { return p.Body == nil && p.Spare.Load() == nil }

// Bound is what all bodies together take, long answers that are held, and what streams
// keep for going on elsewhere. Spares make room for new bodies.
type Bound struct {
	budget
	Spares atomic.Int64 // bytes that spares hold
}
