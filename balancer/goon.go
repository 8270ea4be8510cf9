package balancer

import (
	"bytes"
	"errors"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
)

// broke decides what follows when a worker's part of a stream has ended
// badly. It reports whether the stream goes on elsewhere, and where it does not,
// whether the connection can carry another request.
func (s *relay) broke(err error) (again, keep bool) {
	x := s.x
	if err == errFiltered {
		return false, s.fail(filterFailed)
	}
	if err == errWriting && !x.booking.over() {
		x.booking.cancel(causeClient)
	}
	if x.booking.over() {
		return false, s.stopped()
	}
	word := "died"
	if errors.Is(err, errIdle) {
		word = "hung"
	}
	if s.answer.Advanced() {
		// This worker did carry the stream on: the others may be asked again.
		x.booking.tried, x.booking.deaths = x.booking.tried[:0], 0
	}
	why, ended := x.broken(err, true, word, "a worker's stream broke")
	if errors.Is(err, resume.ErrDiffers) {
		x.d.metrics.resumes.WithLabelValues(x.asked.pool.name, x.record.resumeFor, "failed").Inc()
		return false, s.fail(workerFailed(x.asked.pool.name))
	}
	if whole, keep := s.closeEnded(); whole {
		return false, keep
	}
	if ended != nil {
		return false, s.refuse(ended)
	}
	begun := s.answer.Events() > 0
	if !s.prepareResume() {
		x.d.metrics.resumes.WithLabelValues(x.asked.pool.name, why, "impossible").Inc()
		return false, s.fail(workerFailed(x.asked.pool.name))
	}
	if begun {
		x.record.resumes++
		x.record.resumeFor = why
	}
	return true, false
}

// prepareResume makes the exchange ready to go on after its worker broke off.
// It reports whether there is a way.
func (s *relay) prepareResume() bool {
	x := s.x
	x.payload.takeBack(&x.d.memory)
	if !s.answer.Broke(x.payload.body, s.context()) {
		return false
	}
	if !s.answer.Resumed() {
		return true
	}
	if s.answer.Way() == resume.ByField {
		s.leaveOutForeign()
	}
	prompt := x.booking.ask.Prompt
	if x.record.usage.Known {
		prompt = x.record.usage.Prompt
	}
	x.booking.ask.Prompt, x.booking.ask.Expect = prompt+s.answer.Tokens(), max(x.booking.ask.Expect/2, 1)
	return true
}

// closeEnded writes what is missing of an answer whose worker died between the
// last token and the end mark. It reports whether the answer is whole, and
// whether the connection can carry another request.
func (s *relay) closeEnded() (whole, keep bool) {
	o := newOut()
	defer o.free()
	if !s.answer.Close(&o.Out) {
		return false, false
	}
	return true, s.flush(o) == nil && s.terminate()
}

// context is the longest context of the worker that the exchange was at last,
// or, where that one does not say, of another of its pool; 0: none says. It is
// what workers say of their models, which stays known when one is gone.
func (s *relay) context() int64 {
	x := s.x
	if w := x.booking.worker.Load(); w != nil && w.maxLen.Load() > 0 {
		return w.maxLen.Load()
	}
	for _, w := range *x.asked.pool.workers.Load() {
		if n := w.maxLen.Load(); n > 0 {
			return n
		}
	}
	return 0
}

// leaveOutForeign leaves the workers that are not ours out of the choice: they
// know no roundhouse_resume, and would begin anew.
func (s *relay) leaveOutForeign() {
	x := s.x
	for _, w := range *x.asked.pool.workers.Load() {
		if !w.own.Load() {
			x.booking.tried = append(x.booking.tried, ledger.Try{Worker: w.acct, Generation: w.acct.Generation(x.d.ledger)})
		}
	}
}

// keepSpare makes the body a spare, or gives it back at once where the stream
// could not go on with it anyway.
func (s *relay) keepSpare() {
	x := s.x
	if s.answer.MayResume() {
		x.payload.keepSpare(&x.d.memory)
		return
	}
	x.payload.give(&x.d.memory)
}

// account books what the answer keeps for going on elsewhere, beyond the little that
// every stream keeps. Where there is no room, or its body had to make some, the stream
// gives it up.
func (s *relay) account() {
	x, p := s.x, &s.x.payload
	if !s.answer.MayResume() && p.kept == 0 {
		return
	}
	more := s.answer.Kept() - p.kept
	if s.answer.Events() > 0 && p.lost() && s.answer.MayResume() {
		s.answer.GiveUp()
	} else if more <= keptStep {
		return
	} else if x.d.memory.spareRoom(more) && x.d.memory.take(more) {
		p.kept += more
		return
	} else if s.answer.MayResume() {
		s.answer.GiveUp()
		p.give(&x.d.memory)
		x.d.metrics.resumes.WithLabelValues(x.asked.pool.name, "memory", "impossible").Inc()
	}
	if left := s.answer.Kept(); left < p.kept {
		x.d.memory.give(p.kept - left)
		p.kept = left
	}
}

// keptStep is by how much what a stream keeps grows before it is booked.
const keptStep = 16 << 10

// forbidsFields reports whether a worker refused the request for the fields that
// the door has added to it, which it then gets no more.
func (s *relay) forbidsFields(status int, body []byte) bool {
	x := s.x
	if status != 400 && status != 422 || x.booking.own || !s.answer.IDs() || s.answer.Events() > 0 || x.asked.peek.ReturnTokenIDs.Set() ||
		!bytes.Contains(body, []byte("return_token_ids")) {
		return false
	}
	w := x.booking.worker.Load()
	if !w.strict.Swap(true) {
		x.d.log.Info("a worker forbids the field return_token_ids: its streams can only be given again from their beginning", "worker", w.id)
	}
	x.booking.depart()
	x.release(ledger.Neutral)
	return true
}
