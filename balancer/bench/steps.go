package main

import (
	"fmt"
	"slices"
	"time"
)

// turns runs one measurement on every proxy several times, in turns, and
// gives each value's median.
func (b *bench) turns(rounds int, names []figure, one func(p *proxy) ([]float64, error)) ([]figure, error) {
	all := make([]map[string][]float64, len(names))
	for i := range names {
		all[i] = map[string][]float64{}
	}
	for range rounds {
		for _, p := range b.proxies {
			values, err := one(p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			for i, v := range values {
				all[i][p.name] = append(all[i][p.name], v)
			}
		}
	}
	for i := range names {
		names[i].values = map[string]float64{}
		for n, v := range all[i] {
			slices.Sort(v)
			names[i].values[n] = v[len(v)/2]
		}
	}
	return names, nil
}

func (b *bench) rounds() int {
	if b.o.short {
		return 2
	}
	return 5
}

func (b *bench) plain() ([]figure, error) {
	req := request(false, "x", 1000)
	span := b.o.span(1500*time.Millisecond, 5*time.Second)
	return b.turns(b.rounds(), []figure{
		{name: "1 KB chat, 64 connections", unit: "requests/s"}, {name: "  p50", unit: "s"}, {name: "  p99", unit: "s"}, {name: "  processor a request", unit: "us"},
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
		{name: "streams of 100 events, 64 at once", unit: "events/s"}, {name: "  processor an event", unit: "us"},
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

func (b *bench) firstByte() ([]figure, error) {
	req := request(false, "x", 1000)
	span := b.o.span(time.Second, 4*time.Second)
	direct, err := steady(b.ups[0], 200, req, span)
	if err != nil {
		return nil, err
	}
	return b.turns(b.rounds(), []figure{
		{name: "added at 200 requests/s, p50", unit: "s"}, {name: "  p99", unit: "s"},
	}, func(p *proxy) ([]float64, error) {
		r, err := steady(p.addr, 200, req, span)
		if err != nil {
			return nil, err
		}
		return []float64{max(0, r.at(.5)-direct.at(.5)), max(0, r.at(.99)-direct.at(.99))}, nil
	})
}

func (b *bench) longPrompts() ([]figure, error) {
	req := request(false, "x", 400_000)
	return b.turns(b.rounds(), []figure{{name: "400 KB prompts at 100/s", unit: "cores"}}, func(p *proxy) ([]float64, error) {
		before := p.cpu()
		r, err := steady(p.addr, 100, req, b.o.span(2*time.Second, 6*time.Second))
		if err != nil {
			return nil, err
		}
		return []float64{(p.cpu() - before) / r.seconds}, nil
	})
}

func (b *bench) idleStreams() ([]figure, error) {
	n := 9_000 // what 20 000 descriptors allow a relay
	if b.o.short {
		n = 2000
	}
	req := request(true, "600,1s", 1000)
	return b.turns(1, []figure{
		{name: fmt.Sprintf("%d open streams, 1 event/s: memory each", n), unit: "KiB"}, {name: "  lost", unit: "streams"}, {name: "  processor", unit: "cores"},
	}, func(p *proxy) ([]float64, error) {
		base := p.resident()
		conns, err := open(p.addr, n, req)
		defer closeAll(conns)
		if err != nil {
			return nil, err
		}
		time.Sleep(b.o.span(2*time.Second, 8*time.Second))
		before, began := p.cpu(), time.Now()
		time.Sleep(b.o.span(2*time.Second, 8*time.Second))
		used := (p.cpu() - before) / time.Since(began).Seconds()
		held := (p.resident() - base) / float64(n) / 1024
		return []float64{held, float64(n - alive(conns)), used}, nil
	})
}

// hundredWorkers measures a door that has nothing to do but to follow a
// hundred workers.
func (b *bench) hundredWorkers() ([]figure, error) {
	p, err := b.door("hundred", 100)
	if err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	before, began := p.cpu(), time.Now()
	time.Sleep(b.o.span(3*time.Second, 10*time.Second))
	used := (p.cpu() - before) / time.Since(began).Seconds()
	return []figure{{name: "idle, 100 scraped workers", unit: "cores", values: map[string]float64{"door": used}}}, nil
}
