package balancer

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"encoding/json"
	"strconv"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
	"roundhouse/worker/api"
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
		at := attempt{x: x, w: x.booking.worker.Load(), a: a}
		err := at.send(false)
		had := !neverHad(err)
		if errors.Is(err, conn.ErrStale) {
			err = at.send(true)
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
		if at.engineEnded() {
			if _, f := x.broken(errEngine, true, "engine_ended", "a worker's engine has ended"); f != nil {
				return f
			}
			continue
		}
		if again, how := at.refused(); again {
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

// attempt is one try of an exchange at a worker.
type attempt struct {
	x *exchange
	w *fleet.Worker
	a *wire.Answer // its head, once it has come
}

// errEngine is a server's own word that its engine has ended.
var errEngine = errors.New("the server answers, and its engine has ended")

// engineEnded reports whether a vLLM, whose server outlives its engine for a moment or for
// good, says that the engine has ended: of the request and of all others there. That is a
// worker's death and no answer, and so many at once would be too much for the retries' budget.
func (at attempt) engineEnded() bool {
	const most = 1 << 10 // bytes of such an answer
	if at.a.Status != 500 || !at.a.JSON() || at.a.Length <= 0 || at.a.Length > most {
		return false
	}
	c := at.x.booking.connection()
	if c == nil {
		return false
	}
	c.ReadIn(at.x.d.now(), at.x.d.step)
	body, err := c.Ahead(int(at.a.Length))
	return err == nil && bytes.Contains(body, []byte("EngineCore encountered an issue"))
}

// refused reports whether the answer is a refusal that another worker may not give.
func (at attempt) refused() (bool, ledger.Outcome) {
	x, a := at.x, at.a
	how := ledger.Neutral
	switch {
	case a.Status == 503 && x.d.fleet.NotTaken(at.w):
		return true, how // which costs no attempt: every worker may end at once
	case a.Status == 429 || a.Status == 503:
		how = ledger.Busy
	case a.Status == 404 && !a.JSON():
		// No engine says it like this: where its worker was, another program listens by now.
	case a.Status < 500 || a.Status == 501 || a.Status == 505:
		return false, ledger.Neutral
	}
	cfg := &x.v.set.Door.Retry
	if x.booking.attempts >= cfg.Attempts || !x.asked.pool.Others(&x.d.fleet, &x.booking.Ask, x.booking.tried, x.booking.Charge.Worker()) || !x.asked.pool.Retries.Spend(x.d.now(), cfg.Budget) {
		return false, how
	}
	x.booking.attempts++
	if how == ledger.Neutral {
		x.booking.erred = append(x.booking.erred, x.booking.Charge.Try())
	}
	return true, how
}

// send writes the request to the worker and reads the head of its answer.
func (at attempt) send(fresh bool) error {
	x := at.x
	now := x.d.now()
	c, err := at.w.Up.Load().Get(fresh, now)
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
	if err := at.write(c); err != nil {
		c.Close()
		x.booking.hold(nil)
		if c.Reused {
			return fmt.Errorf("%w: %w", conn.ErrStale, err)
		}
		return err
	}
	if err := at.awaitHead(c, now); err != nil {
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
func (at attempt) awaitHead(c *conn.Conn, began int64) error {
	x, now := at.x, began
	limit := int64(time.Duration(x.v.set.Door.Limits.FirstByte))
	for {
		c.ReadIn(now, x.d.step)
		err := c.Answer(at.a)
		if err == nil || !conn.TimedOut(err) {
			return err
		}
		now = x.d.now()
		v := x.d.ledger.Account(at.w.Acct, now)
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
	if err == nil {
		return false
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
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

// bodyEdit replaces one part of a body; From == To inserts.
type bodyEdit struct {
	at   wire.Span
	with []byte
}

// write sends the request to the worker, a short one as soon as its answer is
// waited for: built anew from parsed parts, with the body as it came but for
// what the door changes in it.
func (at attempt) write(c *conn.Conn) error {
	x := at.x
	x.booking.own = at.w.Own.Load()
	var few [4]bodyEdit
	body, path, cuts := x.payload.Body, x.asked.path, few[:0]
	if s := x.answer; s != nil && s.Way() == resume.ByIDs {
		body, path = s.Next().Body, s.Next().Path
	} else {
		if s != nil && at.w.Strict.Load() {
			s.WithoutIDs()
		}
		cuts = x.asked.splices(cuts, x.payload.Body, x.answer)
	}
	length := len(body)
	for _, s := range cuts {
		length += len(s.with) - (s.at.To - s.at.From)
	}
	hb := conn.LendHead()
	b := at.head((*hb)[:0], c, path, length)
	if length <= 32<<10 {
		*hb = appendSpliced(b, body, cuts)
		return c.Sock.WriteFirst(hb, c.Rested)
	}
	defer conn.GiveHead(hb)
	_, err := c.Sock.Push(b, true)
	*hb = b[:0]
	from := 0
	for _, s := range cuts {
		if err == nil && s.at.From > from {
			_, err = c.Sock.Push(body[from:s.at.From], true)
		}
		if err == nil && len(s.with) > 0 {
			_, err = c.Sock.Push(s.with, true)
		}
		from = s.at.To
	}
	if err == nil {
		_, err = c.Sock.Write(body[from:])
	}
	return err
}

func appendSpliced(dst, body []byte, cuts []bodyEdit) []byte {
	from := 0
	for _, s := range cuts {
		dst = append(dst, body[from:s.at.From]...)
		dst = append(dst, s.with...)
		from = s.at.To
	}
	return append(dst, body[from:]...)
}

// head writes the request line and the fields that a worker is to see.
func (at attempt) head(b []byte, c *conn.Conn, path string, length int) []byte {
	x, w := at.x, at.w
	b = append(b, x.asked.method...)
	b = append(b, ' ')
	b = append(b, c.Up.Prefix...)
	b = append(b, path...)
	if x.asked.query != "" {
		b = append(b, '?')
		b = append(b, x.asked.query...)
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.Up.Host...)
	if x.asked.method == "POST" {
		b = append(b, "\r\nContent-Type: "...)
		b = append(b, x.asked.ctype...)
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(length), 10)
	}
	if x.asked.accept != "" {
		b = append(b, "\r\nAccept: "...)
		b = append(b, x.asked.accept...)
	}
	b = append(b, "\r\n"+api.HeaderRequestID+": "...)
	b = append(b, x.asked.id...)
	if key := w.APIKey.Load(); key != nil && *key != "" {
		b = append(b, "\r\nAuthorization: Bearer "...)
		b = append(b, *key...)
	}
	if x.booking.own {
		b = append(b, "\r\n"+api.HeaderDoor+": "...)
		b = append(b, x.d.id...)
		b = append(b, "\r\n"+api.HeaderSeq+": "...)
		b = strconv.AppendUint(b, x.booking.Charge.Seq, 10)
		if x.asked.owner != "" {
			b = append(b, "\r\n"+api.HeaderOwner+": "...)
			b = append(b, x.asked.owner...)
		}
		if waited := (x.booking.sentAt - x.booking.came) / 1e6; waited > 0 {
			// It has aged here, or at a worker that failed it, and ages on there.
			b = append(b, "\r\n"+api.HeaderWaited+": "...)
			b = strconv.AppendInt(b, waited, 10)
		}
		b = x.booking.chunkField(b)
	}
	b = x.trace.fields(b, w.ID)
	b = filterFields(b, x.pass)
	return append(b, "\r\n\r\n"...)
}

// splices lists what the door changes in a body, in the order of the body. s is
// nil where the answer does not stream.
func (a *asked) splices(cuts []bodyEdit, body []byte, s *resume.Stream) []bodyEdit {
	p := &a.peek
	if a.kind == surface.Form || a.kind == surface.Stored {
		return cuts
	}
	var insert []byte
	if s != nil && s.IDs() {
		if !p.ReturnTokenIDs.Set() {
			insert = append(insert, `"return_token_ids":true,`...)
		}
		if !p.StreamOptions.Set() {
			insert = append(insert, `"stream_options":{"include_usage":true},`...)
		}
		if s.Way() == resume.ByField {
			r, err := json.Marshal(s.Field())
			if err != nil {
				panic("BUG: a resume cannot be encoded: " + err.Error())
			}
			insert = append(append(append(insert, `"roundhouse_resume":`...), r...), ',')
		}
	}
	if insert != nil {
		cuts = append(cuts, bodyEdit{wire.Span{From: p.Open, To: p.Open}, insert})
	}
	var tail [3]bodyEdit
	n := 0
	if p.ModelSpan.Set() && a.model != p.Model {
		tail[n] = bodyEdit{p.ModelSpan, wire.Quote(a.model)}
		n++
	}
	if s != nil && s.IDs() {
		if p.ReturnTokenIDs.Set() && !p.WantsTokenIDs {
			tail[n] = bodyEdit{p.ReturnTokenIDs, []byte("true")}
			n++
		}
		if p.StreamOptions.Set() && !p.IncludeUsage {
			tail[n] = bodyEdit{p.StreamOptions, withUsage(p.StreamOptions.Of(body))}
			n++
		}
	}
	for i := 1; i < n; i++ {
		for j := i; j > 0 && tail[j].at.From < tail[j-1].at.From; j-- {
			tail[j], tail[j-1] = tail[j-1], tail[j]
		}
	}
	return append(cuts, tail[:n]...)
}

// withUsage adds include_usage to the stream options that a client gave.
func withUsage(options []byte) []byte {
	m := map[string]json.RawMessage{}
	if json.Unmarshal(options, &m) != nil || m == nil {
		m = map[string]json.RawMessage{}
	}
	m["include_usage"] = json.RawMessage("true")
	b, err := json.Marshal(m)
	if err != nil {
		panic("BUG: stream options cannot be encoded: " + err.Error())
	}
	return b
}

// filterFields appends the fields that filters set on the way to the worker.
func filterFields(b []byte, pass *extend.Pass) []byte {
	if pass == nil {
		return b
	}
	for _, h := range pass.Headers {
		if h[1] != "" {
			b = append(append(append(append(b, "\r\n"...), h[0]...), ": "...), h[1]...)
		}
	}
	return b
}
