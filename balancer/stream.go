package balancer

import (
	"bytes"
	"errors"

	"fmt"
	"net"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
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
		s.leaveOutOtherEngines()
	}
	prompt := x.booking.Ask.Prompt
	if x.record.usage.Known {
		prompt = x.record.usage.Prompt
	}
	x.booking.Ask.Prompt, x.booking.Ask.Expect = prompt+s.answer.Tokens(), max(x.booking.Ask.Expect/2, 1)
	return true
}

// closeEnded writes the missing end of an answer whose worker died between the
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

// leaveOutOtherEngines leaves the workers that are not ours out of the choice: they
// know no roundhouse_resume, and would begin anew.
func (s *relay) leaveOutOtherEngines() {
	x := s.x
	for _, w := range *x.asked.pool.Workers.Load() {
		if !w.Own.Load() {
			x.booking.tried = append(x.booking.tried, ledger.Try{Worker: w.Acct, Generation: w.Acct.Generation(x.d.ledger)})
		}
	}
}

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

// hijack takes the connection out of fasthttp and runs the stream in a
// goroutine of its own, which holds nothing of fasthttp's.
func (s *relay) hijack(ctx *fasthttp.RequestCtx) {
	x := s.x
	if len(x.payload.Body) <= conn.BufSize {
		x.payload.Body = append([]byte(nil), x.payload.Body...) // fasthttp's buffer is larger, and wanted for the next request
	} else {
		x.payload.Body = ctx.Request.SwapBody(nil)
	}
	s.cors = corsLines(ctx)
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(net.Conn) { go s.run() })
}

// run carries a stream to its end and then serves the connection on.
func (s *relay) run() {
	x := s.x
	if s.contained() {
		x.d.serve(x.g)
		return
	}
	x.g.Close()
}

// contained is stream, and holds a panic of the work after its end as well.
func (s *relay) contained() (keep bool) {
	x := s.x
	defer func() {
		if e := recover(); e != nil {
			x.d.log.Error("the end of a stream panicked", "request", x.asked.id, "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			keep = false
		}
	}()
	return s.stream()
}

// stream relays one stream, from as many workers as it takes. It reports
// whether the connection can carry another request.
func (s *relay) stream() (keep bool) {
	x := s.x
	defer x.finish()
	defer func() {
		if e := recover(); e != nil {
			x.d.log.Error("a stream panicked", "request", x.asked.id, "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			x.abandon()
			x.record.outcome, x.record.code = "failed", "internal"
			keep = false
		}
	}()
	a := &x.came
	for {
		f := x.open(a)
		if x.booking.over() {
			return s.stopped()
		}
		if f != nil {
			return s.refuse(f)
		}
		if a.Status != 200 || !a.EventStream {
			if again, done := s.plain(a); !again {
				return done
			}
			continue
		}
		err := s.relay(a)
		if err == nil {
			return s.complete()
		}
		if again, keep := s.broke(err); !again {
			return keep
		}
	}
}

// stopped ends a stream that nobody waits for, or that was told to end.
func (s *relay) stopped() bool {
	x := s.x
	x.abandon()
	x.record.status = 499
	phase := "waiting"
	if s.answer.Events() > 0 {
		phase = "streaming"
	}
	f, outcome := x.parted(phase)
	if f != nil {
		s.refuse(f)
	}
	x.record.outcome = outcome
	return false
}

// plain passes on an answer that is no event stream: an error, mostly. While a
// stream is being resumed there is no place for one: another worker is tried.
func (s *relay) plain(a *wire.Answer) (again, keep bool) {
	x := s.x
	head := reply{headerText(a.ContentType), headerText(a.RetryAfter), headerText(a.Disposition)}
	status := a.Status
	body, rest, err := x.readAnswer(a, nil)
	if rest != nil && !s.started {
		s.started = true
		p := passage{x: x, r: *rest}
		return false, p.run(head, body, s.cors)
	}
	if rest != nil {
		err = errors.New("a long answer came in place of the rest of a stream")
	}
	if err == nil && s.forbidsFields(status, body) {
		return true, false
	}
	if err != nil || s.started {
		x.g.sent() // nothing of it will be
		if x.booking.over() {
			return false, s.stopped()
		}
		if err != nil {
			if _, f := x.broken(err, true, "broken_answer", "worker broke off an answer"); f != nil {
				return false, s.refuse(f)
			}
			return true, false
		}
		x.d.log.Warn("a worker would not go on with a stream", "request", x.asked.id, "worker", x.record.worker, "status", status)
		x.lost(x.booking.judged(x.d.ledger, max(status, 400), x.d.now()), "broken_answer")
		if s.answer.Events() > 0 {
			return false, s.fail(surface.WorkerFailed(x.asked.pool.Name))
		}
		return true, false
	}
	x.d.responses.Keep(x.asked.path, x.asked.owner, body, x.booking.Charge.Try())
	x.settle(status, body)
	x.record.status = status
	return false, s.whole(status, head, body)
}

// complete ends a stream that came whole, and reports whether the connection
// can go on.
func (s *relay) complete() bool {
	x := s.x
	s.meter.whole()
	how := x.booking.judged(x.d.ledger, 200, x.d.now())
	if x.record.resumes.Load() > 0 {
		x.d.metrics.Resumed(x.asked.pool.Name, x.record.resumeFor, "ok")
	}
	x.release(how)
	return s.terminate()
}
