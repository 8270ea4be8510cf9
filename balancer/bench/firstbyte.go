package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// How the first byte is measured: of every round's blocks each relay has as many
// as the others, and so has the upstream itself. A block begins with requests
// that only bring back to the caches what the others' blocks have driven out.
const (
	firstByteRate   = 200
	blockRequests   = 100
	blockUncounted  = 10
	blocksARound    = 20
	blocksIfShort   = 2
	firstByteOrders = 0x726f756e64 // the seed of the blocks' orders
)

// path is one way to the upstreams: a relay, or none.
type path struct {
	name   string
	proxy  *proxy // nil: the upstream itself
	idlers *idlers
	times  []time.Duration // of the round
	cpu    float64
}

// firstByte measures what a relay adds to the time until an answer comes.
//
// The difference is as small as what the machine does by itself from one second
// to the next, and p99 is what the rare things make of it. So a round goes from
// one to the other in blocks of half a second, in an order drawn anew for each
// time around, over connections that have served before; and its figures are
// those of all the times of its blocks together, less the upstream's own.
func (b *bench) firstByte() ([]figure, error) {
	lanes, err := b.lanes()
	defer func() {
		for _, l := range lanes {
			l.idlers.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	rows := []figure{
		{name: "added to the first byte at 200 requests/s, p50", unit: "s", goals: []goal{atMost("nginx", 1)}},
		{name: "  p99", unit: "s", goals: []goal{atMost("nginx", 1)}}, {name: "  processor a request", unit: "us"},
	}
	order := rand.New(rand.NewPCG(firstByteOrders, 0))
	for range b.rounds() {
		if err := b.firstByteRound(lanes, order); err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i].rounds = append(rows[i].rounds, map[string]float64{})
		}
		direct := &result{times: lanes[0].times}
		for _, l := range lanes[1:] {
			r := &result{times: l.times}
			for i, v := range []float64{max(0, r.at(.5)-direct.at(.5)), max(0, r.at(.99)-direct.at(.99)), l.cpu / float64(len(l.times)) * 1e6} {
				rows[i].rounds[len(rows[i].rounds)-1][l.name] = v
			}
		}
	}
	return rows, nil
}

// lanes opens the connections to the upstream, which comes first, and to every
// relay.
func (b *bench) lanes() (lanes []*path, err error) {
	add := func(name, addr string, p *proxy) error {
		f, err := dialIdlers(addr)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		lanes = append(lanes, &path{name: name, proxy: p, idlers: f})
		if err := f.use(request(false, "x", 1000)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if err := add("the upstream", b.ups[0], nil); err != nil {
		return lanes, err
	}
	for _, p := range b.proxies {
		if err := add(p.name, p.addr, p); err != nil {
			return lanes, err
		}
	}
	return lanes, nil
}

// firstByteRound fills every lane's times.
func (b *bench) firstByteRound(lanes []*path, order *rand.Rand) error {
	for _, l := range lanes {
		l.times, l.cpu = l.times[:0], 0
	}
	blocks := blocksARound
	if b.o.short {
		blocks = blocksIfShort
	}
	for range blocks {
		for _, i := range order.Perm(len(lanes)) {
			if err := lanes[i].block(); err != nil {
				return fmt.Errorf("%s: %w", lanes[i].name, err)
			}
		}
	}
	return nil
}

// block adds half a second of requests to a lane.
func (l *path) block() error {
	req := request(false, "x", 1000)
	if _, err := l.idlers.steady(firstByteRate, blockUncounted, req); err != nil {
		return err
	}
	var before float64
	if l.proxy != nil {
		before = l.proxy.cpu()
	}
	r, err := l.idlers.steady(firstByteRate, blockRequests, req)
	if err != nil {
		return err
	}
	l.times = append(l.times, r.times...)
	if l.proxy != nil {
		l.cpu += l.proxy.cpu() - before
	}
	return nil
}
