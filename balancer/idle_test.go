package balancer

import (
	"log/slog"
	"net"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"roundhouse/balancer/control"
)

// noListener accepts nobody.
type noListener struct{ closed chan struct{} }

func (l *noListener) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l *noListener) Close() error              { close(l.closed); return nil }
func (l *noListener) Addr() net.Addr            { return &net.TCPAddr{} }

// ran is how often a goroutine has begun to run: the runtime notes an eighth of the times.
func ran() (n uint64) {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	for _, c := range s[0].Value.Float64Histogram().Counts {
		n += c
	}
	return 8 * n
}

// TestIdle leaves a door alone for an hour of simulated time: what it does by time alone it
// does once a second. (TestScrapedTogether is of its workers.)
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := control.WorkerSet{Schema: 1, Pools: []control.Pool{{Name: "p", Policy: "least_kv"}}}
		d, err := New(Options{ID: "own", Listener: &noListener{make(chan struct{})}, Socket: t.TempDir() + "/own.sock", Set: &set, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		d.wg.Add(3)
		go d.accept()
		go d.keepHouse()
		go d.peers.run()
		d.wg.Go(func() { d.usage.Run(d.ctx) })
		const seconds = 3600
		before := ran()
		time.Sleep(seconds * time.Second)
		// Keeping house, other doors and what was used have a goroutine each, and looking for
		// named doors two; a tick each tenth of a second would be ten more.
		if each := float64(ran()-before) / seconds; each > 12 {
			t.Errorf("goroutines of an idle door ran %.1f times a second", each)
		}
		d.stopAll()
	})
}
