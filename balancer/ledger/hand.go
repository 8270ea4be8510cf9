package ledger

// An engine that computes prompts as they come holds KV for those that it has begun, and
// none for those that wait there. What it holds tells nothing of when it begins one:
// it admits by what a prompt needs now, and answers that end make room meanwhile. So a
// request is kept at the door for no other reason than the prompts before it: where
// every worker has enough of them in hand. Here the shorter go first, and whichever
// worker is ready first takes them.

// inHand is how much an engine that computes prompts as they come has before it,
// in seconds, so that it never waits for the door.
const inHand = 0.35

// queuesFor is how long an engine that has said that requests wait there is taken for one
// that computes a prompt at a time. Many show figures that are some seconds old; and one
// that never says it may be many engines in one, all of them ready.
const queuesFor = 10e9

// busy reports whether a request would only wait at a worker at which requests wait, if it
// were sent there now.
// One that must be sent, or may go nowhere else, is sent all the same.
func (r *row) busy(a *Ask, second, perToken float64) bool {
	if r.shortest || r.work+r.elsewhere == 0 || a.Force || a.Eager || a.Prefer != nil || len(a.Order) > 0 {
		return false
	}
	return (r.work+r.elsewhere*perToken-r.begun(a.Now, second))*second > inHand
}
