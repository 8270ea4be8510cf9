package core

import (
	"testing"
	"time"
)

// moved is a pool of three under an operator's rotation whose preparation has found that
// the image's name stands for another image now.
func moved(t *testing.T, canary *Canary) *bench {
	t.Helper()
	b := newBench(t, 3)
	p := &b.d.Pools[0]
	p.Canary = canary
	for i := range p.Workers {
		p.Workers[i].Plain = "plain"
	}
	b.command(Rotate(b.d, "p", nil, b.now))
	b.o.Prepared = map[string]string{PreparedKey(1, "h"): ""}
	for i := range p.Workers {
		p.Workers[i].Hash = "moved"
	}
	b.o.Prepared[PreparedKey(1, "moved")] = ""
	return b
}

func (b *bench) worker(name string) Worker { return b.d.Intent.Workers["p/"+name] }

// An image whose name was moved is a roll-out, whoever began the rotation: its first
// worker is a canary, and the others keep what they ran until it has been judged, also
// through a crash.
func TestMovedImageIsRolledOut(t *testing.T) {
	b := moved(t, &Canary{Share: 0.1, MinRequests: 10})
	b.until("the first is judged", time.Hour, func() bool { return b.rotation().Canary == "1" })
	if w := b.worker("1"); w.Hash != "moved" {
		t.Errorf("the canary runs %+v", w)
	}
	b.see("p/2", func(s *Seen) { s.Process, s.Exit, s.Released = Exited, "exit status 1", true })
	b.until("its neighbour is back", time.Hour, func() bool { return b.worker("2").Phase == Ready && b.worker("2").Generation == 2 })
	if w := b.worker("2"); w.Hash != "h" {
		t.Errorf("its neighbour came back as %+v, before the canary was judged", w)
	}
	b.see("p/1", func(s *Seen) { s.Served = 10 })
	b.until("the rotation is done", time.Hour, func() bool { return b.rotation().State == Done })
	for _, name := range []string{"1", "2", "3"} {
		if w := b.worker(name); w.Hash != "moved" || w.Phase != Ready {
			t.Errorf("%s is %+v", name, w)
		}
	}
}

// One that is worse than the others goes back to the image that ran before, and nobody
// else gets it, however often the pool is rotated.
func TestMovedImageIsRolledBack(t *testing.T) {
	b := moved(t, &Canary{Share: 0.1, MinRequests: 10})
	b.until("the first is judged", time.Hour, func() bool { return b.rotation().Canary == "1" })
	for _, id := range []string{"p/2", "p/3"} {
		b.see(id, func(s *Seen) { s.Served = 100 })
	}
	b.see("p/1", func(s *Seen) { s.Served, s.Failed = 5, 5 })
	b.until("it goes back", time.Hour, func() bool { return b.rotation().State == RolledBack })
	b.o.Prepared[PreparedKey(2, "h")] = ""
	b.command(Rotate(b.d, "p", nil, b.now))
	b.until("the next rotation is done", time.Hour, func() bool { return b.rotation().State == Done })
	for _, name := range []string{"1", "2", "3"} {
		if w := b.worker(name); w.Hash != "h" || w.Phase != Ready {
			t.Errorf("%s is %+v", name, w)
		}
	}
}

// One that does not start is not tried at a second worker.
func TestMovedImageThatDoesNotStart(t *testing.T) {
	b := moved(t, nil)
	b.dies = map[string]bool{"p/1": true}
	b.until("it has ended in its start", time.Hour, func() bool { return b.o.Workers["p/1"].Generation == 2 })
	b.dies = nil
	b.until("it goes back", time.Hour, func() bool { return b.rotation().State == RolledBack })
	for range 600 {
		b.next()
	}
	for _, name := range []string{"1", "2", "3"} {
		if w := b.worker(name); w.Hash != "h" || w.Phase != Ready {
			t.Errorf("%s is %+v", name, w)
		}
	}
	if b.rotation().ID != 1 {
		t.Errorf("another rotation began: %+v", b.rotation())
	}
}

// Workers that were started before anybody asked what their image's name stands for do
// not turn for the answer.
func TestImageAskedLater(t *testing.T) {
	b := newBench(t, 3)
	for i := range b.d.Pools[0].Workers {
		b.d.Pools[0].Workers[i].Plain, b.d.Pools[0].Workers[i].Hash = "h", "resolved"
	}
	for range 600 {
		b.next()
	}
	if b.rotation().ID != 0 {
		t.Errorf("a rotation began: %+v", b.rotation())
	}
}
