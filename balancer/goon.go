package balancer

import (
	"bytes"
	"errors"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
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
		x.d.metrics.Resumed(x.asked.pool.Name, x.record.resumeFor, "failed")
		return false, s.fail(surface.WorkerFailed(x.asked.pool.Name))
	}
	if whole, keep := s.closeEnded(); whole {
		return false, keep
	}
	if ended != nil {
		return false, s.refuse(ended)
	}
	begun := s.answer.Events() > 0
	if !s.prepareResume() {
		x.d.metrics.Resumed(x.asked.pool.Name, why, "impossible")
		return false, s.fail(surface.WorkerFailed(x.asked.pool.Name))
	}
	if begun {
		x.record.resumes.Add(1)
		x.record.resumeFor = why
	}
	return true, false
}

// prepareResume makes the exchange ready to go on after its worker broke off.
// It reports whether there is a way.
func (s *relay) prepareResume() bool {
	x := s.x
	x.payload.TakeBack(&x.d.memory)
	if !s.answer.Broke(x.payload.Body, s.context()) {
		return false
	}
	if !s.answer.Resumed() {
		return true
	}
	if s.answer.Way() == resume.ByField {
		s.leaveOutForeign()
	}
	prompt := x.booking.Ask.Prompt
	if x.record.usage.Known {
		prompt = x.record.usage.Prompt
	}
	x.booking.Ask.Prompt, x.booking.Ask.Expect = prompt+s.answer.Tokens(), max(x.booking.Ask.Expect/2, 1)
	return true
}

// closeEnded writes what is missing of an answer whose worker died between the
// last token and the end mark. It reports whether the answer is whole, and
// whether the connection can carry another request.
func (s *relay) closeEnded() (whole, keep bool) {
	o := conn.LendOut()
	defer o.Free()
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
	if w := x.booking.worker.Load(); w != nil && w.MaxLen.Load() > 0 {
		return w.MaxLen.Load()
	}
	for _, w := range *x.asked.pool.Workers.Load() {
		if n := w.MaxLen.Load(); n > 0 {
			return n
		}
	}
	return 0
}

// leaveOutForeign leaves the workers that are not ours out of the choice: they
// know no roundhouse_resume, and would begin anew.
func (s *relay) leaveOutForeign() {
	x := s.x
	for _, w := range *x.asked.pool.Workers.Load() {
		if !w.Own.Load() {
			x.booking.tried = append(x.booking.tried, ledger.Try{Worker: w.Acct, Generation: w.Acct.Generation(x.d.ledger)})
		}
	}
}

// keepSpare makes the body a spare, or gives it back at once where the stream
// could not go on with it anyway.
func (s *relay) keepSpare() {
	x := s.x
	if s.answer.MayResume() {
		x.payload.KeepSpare(&x.d.memory)
		return
	}
	x.payload.GiveBack(&x.d.memory)
}

// account books what the answer keeps for going on elsewhere, beyond the little that
// every stream keeps. Where there is no room, or its body had to make some, the stream
// gives it up.
func (s *relay) account() {
	x, p := s.x, &s.x.payload
	if !s.answer.MayResume() && p.Kept == 0 {
		return
	}
	more := s.answer.Kept() - p.Kept
	if s.answer.Events() > 0 && p.Lost() && s.answer.MayResume() {
		s.answer.GiveUp()
	} else if more <= keptStep {
		return
	} else if x.d.memory.SpareRoom(more) && x.d.memory.Take(more) {
		p.Kept += more
		return
	} else if s.answer.MayResume() {
		s.answer.GiveUp()
		p.GiveBack(&x.d.memory)
		x.d.metrics.Resumed(x.asked.pool.Name, "memory", "impossible")
	}
	if left := s.answer.Kept(); left < p.Kept {
		x.d.memory.Give(p.Kept - left)
		p.Kept = left
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
	if !w.Strict.Swap(true) {
		x.d.log.Info("a worker forbids the field return_token_ids: its streams can only be given again from their beginning", "worker", w.ID)
	}
	x.booking.depart()
	x.release(ledger.Neutral)
	return true
}

// rewrite lets the filters rewrite the whole events that o holds.
func (s *relay) rewrite(o *conn.Out) error {
	if !s.x.pass.WantsChunks() || len(o.B) == conn.ChunkHead {
		return nil
	}
	out, refusal := s.x.pass.Chunk(o.B[conn.ChunkHead:], s.answer.Done())
	if refusal != nil {
		return errFiltered
	}
	o.B = append(o.B[:conn.ChunkHead], out...)
	return nil
}
