package main

import (
	"fmt"
	"os"
	"time"
)

// turns runs one measurement on every proxy several times, in turns.
func (b *bench) turns(rounds int, rows []figure, one func(p *proxy) ([]float64, error)) ([]figure, error) {
	for range rounds {
		for i := range rows {
			rows[i].rounds = append(rows[i].rounds, map[string]float64{})
		}
		for _, p := range b.proxies {
			values, err := one(p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			for i, v := range values {
				rows[i].rounds[len(rows[i].rounds)-1][p.name] = v
			}
		}
	}
	return rows, nil
}

func (b *bench) rounds() int {
	switch {
	case b.o.rounds > 0:
		return b.o.rounds
	case b.o.short:
		return 2
	}
	return 5
}

func (b *bench) plain() ([]figure, error) { return b.chats("1 KB chat, 64 connections") }

// behindStandard is plain before servers whose every answer costs more.
func (b *bench) behindStandard() ([]figure, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	was, procs := b.ups, len(b.procs)
	defer func() {
		end(b.procs[procs:])
		b.ups, b.procs = was, b.procs[:procs]
	}()
	if b.ups, err = b.upstreams(self, "-nethttp"); err != nil {
		return nil, err
	}
	return b.anew("nethttp", nil, func() ([]figure, error) { return b.chats("the same before net/http servers") })
}

func (b *bench) chats(name string) ([]figure, error) {
	req := request(false, "x", 1000)
	span := b.o.span(1500*time.Millisecond, 5*time.Second)
	return b.turns(b.rounds(), []figure{
		{name: name, unit: "requests/s", goals: []goal{atLeast("nginx", 1), atLeast("haproxy", 1.2)}},
		{name: "  p50", unit: "s"}, {name: "  p99", unit: "s", goals: []goal{atMost("nginx", 1)}}, {name: "  processor a request", unit: "us"},
	}, func(p *proxy) ([]float64, error) {
		before := p.cpu()
		r, err := hammer(p.addr, 64, req, span)
		if err != nil {
			return nil, err
		}
		return []float64{float64(r.requests) / r.seconds, r.at(.5), r.at(.99), (p.cpu() - before) / float64(r.requests) * 1e6}, nil
	})
}

func (b *bench) streams() ([]figure, error) {
	req := request(true, "100,0s", 1000)
	span := b.o.span(1500*time.Millisecond, 5*time.Second)
	return b.turns(b.rounds(), []figure{
		{name: "streams of 100 events, 64 at once", unit: "events/s", goals: []goal{atLeast("nginx", 1)}}, {name: "  processor an event", unit: "us"},
	}, func(p *proxy) ([]float64, error) {
		before := p.cpu()
		r, err := hammer(p.addr, 64, req, span)
		if err != nil {
			return nil, err
		}
		events := float64(r.requests * 101)
		return []float64{events / r.seconds, (p.cpu() - before) / events * 1e6}, nil
	})
}

func (b *bench) longPrompts() ([]figure, error) {
	req := request(false, "x", 400_000)
	return b.turns(b.rounds(), []figure{{name: "400 KB prompts at 100/s", unit: "cores", goals: []goal{atMost("", .25), atMost("nginx", 1.3)}}}, func(p *proxy) ([]float64, error) {
		before := p.cpu()
		r, err := steady(p.addr, 100, req, b.o.span(2*time.Second, 6*time.Second))
		if err != nil {
			return nil, err
		}
		return []float64{(p.cpu() - before) / r.seconds}, nil
	})
}

// hundredWorkers measures a door that has nothing to do but to follow a
// hundred workers.
func (b *bench) hundredWorkers() ([]figure, error) {
	p, err := b.door("hundred", 100, nil)
	if err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	before, began := p.cpu(), time.Now()
	time.Sleep(b.o.span(3*time.Second, 10*time.Second))
	used := (p.cpu() - before) / time.Since(began).Seconds()
	return []figure{{name: "idle, 100 scraped workers", unit: "cores", goals: []goal{atMost("", .02)}, rounds: []map[string]float64{{"door": used}}}}, nil
}
