package balancer

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"roundhouse/balancer/extproc"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
	"roundhouse/worker/api"
)

// PickerOptions says how a door chooses for a gateway.
type PickerOptions struct {
	Pool      string // whose workers are chosen; empty: the model says, or there is one pool
	Endpoints int    // are named at most, in the order of the gateway's retries
}

// picker chooses workers for the requests of a gateway.
type picker struct {
	d *common
	o PickerOptions
}

// Picker returns the door as an endpoint picker: it chooses for a gateway as for itself,
// and keeps one account of both.
func (d *Door) Picker(o PickerOptions) extproc.Host { return &picker{d: &d.common, o: o} }

// gatewaysClient is the address that a request has come from: the gateway puts it last
// in X-Forwarded-For, and is trusted.
func gatewaysClient(trusted proxies, forwarded []byte) netip.Addr {
	at := strings.LastIndexByte(string(forwarded), ',')
	last, ok := forwardedAddr(strings.TrimSpace(string(forwarded[at+1:])))
	if !ok {
		return netip.Addr{}
	}
	return trusted.client(last, forwarded[:max(at, 0)])
}

// ready is the accounts of the pool's workers that can be asked, of those that a gateway
// has narrowed the choice to.
func (h *picker) ready(p *fleet.Pool, subset []string) []*ledger.Worker {
	now, out := h.d.now(), []*ledger.Worker{}
	for _, w := range *p.Workers.Load() {
		if addressed(w.Up.Load().Addr, subset) && h.d.ledger.Usable(w.Acct, now) {
			out = append(out, w.Acct)
		}
	}
	return out
}

// addressed reports whether an address is one of a list, however it is written there.
func addressed(addr string, list []string) bool {
	at, err := netip.ParseAddrPort(addr)
	return slices.ContainsFunc(list, func(s string) bool {
		if s == addr {
			return true
		}
		other, no := netip.ParseAddrPort(s)
		return err == nil && no == nil && at.Port() == other.Port() && at.Addr().Unmap() == other.Addr().Unmap()
	})
}

// endpoints are the addresses that a gateway is to try, the chosen worker's first and
// those behind it by what was predicted of them.
func (h *picker) endpoints(p *fleet.Pool, w *fleet.Worker, now int64) string {
	first := w.Up.Load().Addr
	if h.o.Endpoints <= 1 {
		return first
	}
	all := *p.Workers.Load()
	seen := h.d.ledger.Weighed(nil, &p.Group, w.Acct, len(all), now)
	others := slices.DeleteFunc(seen, func(s ledger.Weighed) bool { return s.ID == w.ID || s.Out != "" })
	slices.SortStableFunc(others, func(a, b ledger.Weighed) int { return cmp.Compare(a.Wait, b.Wait) })
	list := []string{first}
	for _, o := range others[:min(len(others), h.o.Endpoints-1)] {
		for _, w := range all {
			if w.ID == o.ID {
				list = append(list, w.Up.Load().Addr)
			}
		}
	}
	return strings.Join(list, ",")
}

// forged are fields of ours that a worker believes: no client may send them.
var forged = []string{api.HeaderDoor, api.HeaderSeq, api.HeaderChunks, api.HeaderWaited, api.HeaderOwner}

// gatewayFields are the fields that the worker is to see beside the client's, and those of the
// client's that it is not to see.
func gatewayFields(x *exchange, w *fleet.Worker) (set [][2]string, remove []string) {
	remove = extproc.Control()
	put := func(name, value string) { set = append(set, [2]string{strings.ToLower(name), value}) }
	put(api.HeaderRequestID, x.asked.id)
	switch key := w.APIKey.Load(); {
	case key != nil && *key != "":
		put("authorization", "Bearer "+*key)
		remove = append(remove, "x-api-key")
	case x.asked.key != nil:
		remove = append(remove, "authorization", "x-api-key")
	}
	if x.booking.own && x.booking.Charge.Worker() != nil {
		put(api.HeaderDoor, x.d.id)
		put(api.HeaderSeq, strconv.FormatUint(x.booking.Charge.Seq, 10))
		if x.asked.owner != "" {
			put(api.HeaderOwner, x.asked.owner)
		}
		if waited := (x.booking.sentAt - x.booking.came) / 1e6; waited > 0 {
			put(api.HeaderWaited, strconv.FormatInt(waited, 10))
		}
	}
	lines := x.trace.fields(nil, w.ID)
	if x.booking.own {
		lines = x.booking.chunkField(lines)
	}
	for line := range strings.SplitSeq(string(lines), "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			put(name, value)
		}
	}
	for _, name := range forged {
		name = strings.ToLower(name)
		if !slices.ContainsFunc(set, func(f [2]string) bool { return f[0] == name }) {
			remove = append(remove, name)
		}
	}
	return set, remove
}

// dropped are the reasons by which gateways know our refusals, with the status that they
// expect of each; 0: ours.
var dropped = map[string]struct {
	status int
	reason string
}{
	"queue_full":    {429, extproc.Saturated},
	"saturated":     {429, extproc.Saturated},
	"queue_timeout": {429, extproc.Expired},
	"memory":        {0, extproc.Saturated},
	"no_worker":     {0, extproc.NoEndpoints},
	"shutting_down": {0, extproc.ShuttingDown},
	"cancelled":     {503, extproc.Evicted},
}

// refusal is a failure as the gateway's answer to the client.
func refusal(f *surface.Failure, path, id string) *extproc.Refusal {
	r := &extproc.Refusal{Status: f.Status, Code: f.Code, Body: f.JSON(path)}
	why := dropped[f.Code]
	if why.status != 0 {
		r.Status = why.status
	}
	put := func(name, value string) {
		if value != "" {
			r.Fields = append(r.Fields, [2]string{name, value})
		}
	}
	put("content-type", "application/json")
	put("x-request-id", id)
	put(extproc.Dropped, why.reason)
	put("allow", f.Allow)
	if f.RetryAfter > 0 {
		put("retry-after", strconv.Itoa(f.RetryAfter))
	}
	if f.Status == 401 {
		put("www-authenticate", "Bearer")
	}
	return r
}

// The bounds of how long a request is taken for in flight whose answer is not seen, and
// the tokens a second that such a one is taken to get at a worker of which nothing was
// learned.
const (
	leastUnseen = time.Second
	plainDecode = 20
)

// unseenFor is how long a request should take whose answer is not seen. What it takes
// beyond that the worker's report shows, as load that others have sent.
func unseenFor(x *exchange) time.Duration {
	decode := x.d.ledger.Account(x.booking.worker.Load().Acct, x.d.now()).Decode
	if decode <= 0 {
		decode = plainDecode
	}
	seconds := x.booking.Charge.Predicted() + float64(x.booking.Ask.Expect)/decode
	return min(max(time.Duration(seconds*1e9), leastUnseen), time.Duration(x.v.set.Door.Limits.FirstByte))
}
