package balancer

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// open finds a worker and sends it the request, again elsewhere where one
// fails, until the head of an answer is there. Then x.up holds the connection
// just behind that head, and the charge is live.
func (x *exchange) open(a *wire.Answer) *surface.Failure {
	for {
		if x.booking.over() {
			return nil
		}
		if f := x.place(); f != nil || x.booking.over() {
			return f
		}
		w := x.booking.worker.Load()
		err := x.send(w, a, false)
		had := !neverHad(err)
		if errors.Is(err, conn.ErrStale) {
			err = x.send(w, a, true)
			had = had || !neverHad(err) // at a worker that has died since, it counts how the kept connection ended
		}
		if x.booking.over() {
			return nil
		}
		if err != nil {
			if _, f := x.broken(err, had, retryReason(err), "worker failed a request"); f != nil {
				return f
			}
			continue
		}
		if again, how := x.refusedBy(a); again {
			x.lost(how, fmt.Sprintf("status_%d", a.Status))
			continue
		}
		return nil
	}
}

func retryReason(err error) string {
	if conn.TimedOut(err) {
		return "timeout"
	}
	return "connection"
}

// refusedBy reports whether an answer is a refusal that another worker may
// not give.
func (x *exchange) refusedBy(a *wire.Answer) (bool, ledger.Outcome) {
	how := ledger.Neutral
	switch {
	case a.Status == 503 && x.d.fleet.NotTaken(x.booking.worker.Load()):
		return true, how // which costs no attempt: every worker may end at once
	case a.Status == 429 || a.Status == 503:
		how = ledger.Busy
	case a.Status < 500 || a.Status == 501 || a.Status == 505:
		return false, ledger.Neutral
	}
	cfg := &x.v.set.Door.Retry
	if x.booking.attempts >= cfg.Attempts || !x.asked.pool.Others(&x.d.fleet, x.booking.tried, x.booking.Charge.Worker()) || !x.asked.pool.Retries.Spend(x.d.now(), cfg.Budget) {
		return false, how
	}
	x.booking.attempts++
	if how == ledger.Neutral {
		x.booking.erred = append(x.booking.erred, x.booking.Charge.Try())
	}
	return true, how
}

// send writes the request to a worker and reads the head of its answer.
func (x *exchange) send(w *fleet.Worker, a *wire.Answer, fresh bool) error {
	now := x.d.now()
	c, err := w.Up.Load().Get(fresh, now)
	if err != nil {
		return err
	}
	if err := x.booking.hold(c); err != nil {
		c.Close()
		return err
	}
	x.record.state.CompareAndSwap(phaseQueued, phaseSent)
	if x.record.overhead == 0 {
		x.record.overhead = now - x.asked.start - x.record.queued
	}
	c.WriteIn(now, x.d.writeWithin)
	if err := x.write(w, c); err != nil {
		c.Close()
		x.booking.hold(nil)
		if c.Reused {
			return fmt.Errorf("%w: %w", conn.ErrStale, err)
		}
		return err
	}
	if err := x.awaitHead(w, c, a, now); err != nil {
		c.Close()
		x.booking.hold(nil)
		return err
	}
	return nil
}

// step is how long a wait for a worker lasts before the door looks around, and
// writes a heartbeat to a client whose stream is silent.
const step = 10 * time.Second

// awaitHead waits for the head of an answer: up to the first-byte limit, or for as
// long as the prompts there may take, and on while the worker makes progress on
// something.
func (x *exchange) awaitHead(w *fleet.Worker, c *conn.Conn, a *wire.Answer, began int64) error {
	now := began
	limit := int64(time.Duration(x.v.set.Door.Limits.FirstByte))
	for {
		c.ReadIn(now, x.d.step)
		err := c.Answer(a)
		if err == nil || !conn.TimedOut(err) {
			return err
		}
		now = x.d.now()
		v := x.d.ledger.View(w.Acct, now)
		if since := max(began, v.ProgressAt); now-since > max(limit, int64(fleet.Slower*v.PrefillSeconds*1e9)) {
			return err
		}
	}
}

// mostDeaths is how many workers may die in a row while a request is there, without
// a token for it between: it is given to no third, for it may be what kills them.
const mostDeaths = 2

// errEnded is what a request is answered at whose side too many workers died.
var errEnded = &surface.Failure{Status: 500, Type: "api_error", Code: "workers_died",
	Message: "two workers died one after the other while they had this request; it is given to no other"}

// neverHad reports whether an error, before a byte of the answer, shows that the worker
// had not read the request: it refused the connection, or the kernel reset it, as it
// does if a process ends with bytes left unread. A process that had read everything
// ends with an end of file. So an outage of all workers at once, which sends requests
// to a worker that is dead already, does not look like a request that kills them.
func neverHad(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// broken enters that the present worker has broken off the request, which it had read
// or not, and returns the word by which that is counted, and errEnded if the request
// is to be given to no other.
func (x *exchange) broken(err error, had bool, word, what string) (why string, f *surface.Failure) {
	w := x.booking.worker.Load()
	how, why := x.booking.blame(word)
	x.d.log.Warn(what, "request", x.asked.id, "worker", w.ID, "reason", why, "error", err.Error())
	switch {
	case errors.Is(err, resume.ErrDiffers): // which is no fault, where tokens are drawn
		how = ledger.Neutral
	case errors.Is(err, resume.ErrEvent):
		how = ledger.Neutral
		x.booking.erred = append(x.booking.erred, x.booking.Charge.Try())
	}
	x.lost(how, why)
	if how != ledger.Failed {
		return why, nil
	}
	x.d.fleet.Suspect(w, err)
	if had {
		x.booking.deaths++
	}
	if x.booking.deaths < mostDeaths {
		return why, nil
	}
	return why, errEnded
}

// judged is what an answer says of the worker that gave it. An error of the
// worker's own (5xx) blames it only where another worker then served the request:
// one that fails everywhere is itself to blame.
func (x *exchange) judged(status int) ledger.Outcome {
	erred := x.booking.erred
	x.booking.erred = nil
	switch {
	case status == 429 || status == 503:
		return ledger.Busy
	case status >= 500 && len(erred) > 0:
		return ledger.Neutral
	case status >= 500:
		return ledger.Erred
	case status >= 400:
		return ledger.Neutral
	}
	for _, t := range erred {
		x.d.ledger.Blame(t, x.d.now())
	}
	return ledger.Served
}
