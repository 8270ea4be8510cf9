package main

import (
	"fmt"
	"net"
	"syscall"
	"time"
)

// everySecond is a stream of ten minutes with one event a second.
const everySecond = "600,1s"

// mostStreams is how many streams a relay can hold here: each takes two descriptors.
func mostStreams() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return min(10_100, int(limit.Cur)/2-100), nil
}

// idleStreams measures what many streams take that are open and mostly wait.
func (b *bench) idleStreams() ([]figure, error) {
	n := 10_000
	if b.o.short {
		n = 2000
	}
	room, err := mostStreams()
	if err != nil {
		return nil, err
	}
	if n > room {
		fmt.Printf("%d streams instead of %d: a process may open too few descriptors here for more\n\n", room, n)
		n = room
	}
	return b.openStreams(fmt.Sprintf("%d open streams, 1 event/s", n), []goal{atMost("", 13)}, n, 1000, net.Dial)
}

// heldPrompts measures streams whose prompts are long: where a stream may have to
// go on at another worker, its prompt is kept until its end.
func (b *bench) heldPrompts() ([]figure, error) {
	return b.anew("prompts", nil, func() ([]figure, error) {
		return b.openStreams("2000 open streams with prompts of 16 KB", nil, 2000, 16_000, net.Dial)
	})
}

// encrypted measures streams by TLS.
func (b *bench) encrypted() ([]figure, error) {
	c, err := newCertificate(b.dir)
	if err != nil {
		return nil, err
	}
	return b.anew("tls", c, func() ([]figure, error) {
		return b.openStreams("2000 open streams by TLS", nil, 2000, 1000, c.dial)
	})
}

// anew takes a figure of relays that have done nothing yet.
func (b *bench) anew(tag string, c *certificate, figures func() ([]figure, error)) ([]figure, error) {
	old, procs := b.proxies, len(b.procs)
	defer func() {
		end(b.procs[procs:])
		b.proxies, b.procs = old, b.procs[:procs]
	}()
	var err error
	if b.proxies, err = b.relays(tag, c); err != nil {
		return nil, err
	}
	return figures()
}

// openStreams opens n streams through each relay and looks what they take. Their
// prompts have so many bytes.
func (b *bench) openStreams(name string, goals []goal, n, prompt int, dial dialer) ([]figure, error) {
	req := request(true, everySecond, prompt)
	return b.turns(1, []figure{
		{name: name + ": memory each", unit: "KiB", goals: goals},
		{name: "  lost", unit: "streams", goals: []goal{atMost("", 0)}}, {name: "  processor", unit: "cores"},
	}, func(p *proxy) ([]float64, error) {
		base := p.resident()
		conns, err := open(p.addr, n, req, dial)
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
