package balancer

import (
	"errors"
	"net"
	"syscall"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
)

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
