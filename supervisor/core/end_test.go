package core

import (
	"fmt"
	"testing"
	"time"
)

// end lets p/1 live for so long once it is ready, with so many tokens served, and
// end; it returns how long its restart waits.
func (b *bench) end(life time.Duration, tokens int64, exit string, killed bool) time.Duration {
	b.t.Helper()
	b.until("it is ready", 20*time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Ready })
	b.now = b.now.Add(life - time.Second) // next lets the last one pass
	b.see("p/1", func(s *Seen) {
		s.Process, s.Exit, s.Released, s.Tokens, s.Killed = Exited, exit, true, tokens, killed
	})
	b.next()
	if w := b.d.Intent.Workers["p/1"]; w.Phase == Failed {
		return w.NextTry.Sub(b.now)
	}
	return 0 // begun in the same step
}

// How soon a worker that ended comes back, by how long it had lived, whether it had
// served, and whether it ended so before. Times are in seconds.
func TestEnds(t *testing.T) {
	f := func(name string, life time.Duration, tokens int64, exit string, killed bool, want string) {
		t.Helper()
		b := newBench(t, 2)
		b.d.Intent.Workers["p/2"] = Worker{Phase: Stopped, Generation: 1, Hash: "h", Good: "h"}
		b.see("p/2", func(s *Seen) { s.Process, s.Released = Exited, true })
		got := ""
		for i := range 8 {
			how := exit
			if exit == "" {
				how = fmt.Sprint("exit status ", i+1)
			}
			got += fmt.Sprint(int(b.end(life, tokens, how, killed)/time.Second), " ")
		}
		if got != want+" " {
			t.Errorf("%s: waits of %s; want %s", name, got, want)
		}
	}
	const segv, kill = "killed by signal segmentation fault", "killed by signal killed"
	f("killed every five seconds", 4*time.Second, 100, kill, true, "0 0 0 0 0 0 0 0")
	f("killed every minute, idle", time.Minute, 0, kill, true, "0 0 0 0 0 0 0 0")
	f("killed before it served", 4*time.Second, 0, kill, true, "0 1 2 4 8 16 32 64")
	f("killed for want of memory every minute", time.Minute, 100, kill, false, "0 0 0 0 1 2 4 8")
	f("a request that ends it, sent again and again", 5*time.Second, 100, segv, false, "0 0 0 0 1 2 4 5")
	f("ends at once after it is ready", time.Second, 1, segv, false, "0 1 2 4 8 16 32 64")
	f("ends each time in another way", time.Minute, 100, "", false, "0 0 0 0 0 0 0 0")
	f("once in a quarter of an hour", 15*time.Minute, 100, segv, false, "0 0 0 0 0 0 0 0")
}

// away takes the driver of all workers away for so long; with it go the workers,
// unless they live on.
func (b *bench) away(d time.Duration, live bool) {
	b.t.Helper()
	before := map[string]Seen{}
	for id, s := range b.o.Workers {
		before[id] = s
		s.Process = Unknown
		b.o.Workers[id] = s
	}
	for range int(d / time.Second) {
		b.next()
	}
	for id, s := range before {
		if !live && s.Process == Alive {
			s.Process, s.Exit, s.Interrupted, s.Released = Exited, "exit status 143", true, true
		}
		b.o.Workers[id] = s
	}
}

// §6.8: the driver goes away at every second of a rotation and comes back, with its
// workers or without. The rotation waits, says so, and goes on by itself; nothing
// counts as failed, and nothing as crashed.
func TestRotationWaitsForItsDriver(t *testing.T) {
	for at := 1; at < 9; at++ {
		for _, live := range []bool{false, true} {
			for _, hash := range []string{"h", "new"} {
				b := newBench(t, 2)
				for i := range b.d.Pools[0].Workers {
					b.d.Pools[0].Workers[i].Hash = hash
					b.d.Pools[0].Workers[i].Device = true // which two failed starts would put in quarantine
				}
				if hash == "h" {
					b.command(Rotate(b.d, "p", nil, b.now))
				}
				for range at {
					b.next()
				}
				running := b.rotation().State == Running
				b.away(3*time.Minute, live)
				if r := b.rotation(); running && (r.State != Running || r.Why == "" || !b.told("waits", "halts at")) {
					t.Errorf("second %d: while its driver is away: %+v", at, r)
				}
				b.until("the rotation is done", time.Hour, func() bool { return b.rotation().State == Done })
				for _, id := range []string{"p/1", "p/2"} {
					b.until("it serves", time.Minute, func() bool { return b.d.Intent.Workers[id].Phase == Ready })
					if w := b.d.Intent.Workers[id]; w.Hash != hash || w.Failures > 0 || w.Crashes > 0 || w.Same > 0 || w.Interrupted {
						t.Errorf("second %d, live %v: %s is %+v", at, live, id, w)
					}
				}
				if b.told("crashed", "") || b.told("failed", "") || b.told("rolled_back", "") {
					t.Errorf("second %d, live %v: events %+v", at, live, b.events)
				}
			}
		}
	}
}

// A supervisor that has just begun has not heard of its drivers yet: a rotation that went on
// meanwhile waits a moment, and nobody is told that a driver is away.
func TestRotationGoesOnAfterStart(t *testing.T) {
	b := newBench(t, 2)
	b.command(Rotate(b.d, "p", nil, b.now))
	b.until("it drains", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Draining })
	b.away(time.Second, true)
	b.until("the rotation is done", time.Hour, func() bool { return b.rotation().State == Done })
	if b.told("waits", "") {
		t.Errorf("events %+v", b.events)
	}
}

// A driver that stays away halts the rotation once its time is up, with the reason,
// and so does one that comes and goes. What had no turn waits for --continue.
func TestRotationHaltsWhereItsDriverStaysAway(t *testing.T) {
	b := newBench(t, 2)
	b.command(Rotate(b.d, "p", nil, b.now))
	b.until("it drains", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Draining })
	b.away(15*time.Minute+5*time.Second, false)
	r := b.rotation()
	if r.State != Halted || r.Reason != "waited too long: p/1: its driver does not answer" || len(r.Queue) != 2 {
		t.Errorf("%+v", r)
	}
	b.until("both serve", 10*time.Minute, func() bool {
		return b.d.Intent.Workers["p/1"].Phase == Ready && b.d.Intent.Workers["p/2"].Phase == Ready
	})
	b.command(Continue(b.d, "p", b.now))
	b.until("the rotation is done", time.Hour, func() bool { return b.rotation().State == Done })

	b = newBench(t, 2)
	b.command(Rotate(b.d, "p", nil, b.now))
	b.until("it drains", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Draining })
	for range 10 {
		b.away(3*time.Minute, false)
		b.next() // and it starts again
	}
	if r := b.rotation(); r.State != Halted {
		t.Errorf("%+v", r)
	}
}

// An act that fails because the driver is away is done again, and no start has failed.
func TestStartThatTheDriverDidNotTake(t *testing.T) {
	b := newBench(t, 2)
	w := b.d.Intent.Workers["p/1"]
	w.Phase, w.Generation, w.Deadline = Starting, 2, b.now.Add(time.Minute)
	b.d.Intent.Workers["p/1"] = w
	b.see("p/1", func(s *Seen) {
		s.Process, s.Generation, s.Healthy, s.Failure, s.Interrupted = Absent, 0, false, "cannot connect", true
	})
	b.until("it is ready", time.Minute, func() bool { w := b.d.Intent.Workers["p/1"]; return w.Phase == Ready && w.Generation == 3 })
	if w := b.d.Intent.Workers["p/1"]; w.Failures > 0 || !b.told("interrupted", "cannot connect") {
		t.Errorf("%+v; events %+v", w, b.events)
	}
}

// A worker whose process will end by somebody else's hand, as where a Swarm's node is
// drained, drains for as long as its requests may run, and starts anew once it has
// ended; that is no crash.
func TestLeaving(t *testing.T) {
	b := newBench(t, 2)
	b.until("both are ready", time.Minute, func() bool {
		return b.d.Intent.Workers["p/1"].Phase == Ready && b.d.Intent.Workers["p/2"].Phase == Ready
	})
	b.see("p/1", func(s *Seen) { s.Leaving, s.LeavesIn, s.InFlight = "its node is drained", 20*time.Second, 3 })
	b.next()
	w := b.d.Intent.Workers["p/1"]
	if w.Phase != Draining || w.Then != ThenStart || w.Reason != "its node is drained" || w.Deadline.After(b.now.Add(20*time.Second)) || w.Crashes != 0 {
		t.Fatalf("%+v", w)
	}
	if w := b.d.Intent.Workers["p/2"]; w.Phase != Ready {
		t.Errorf("the other one is %s", w.Phase)
	}
	b.see("p/1", func(s *Seen) {
		s.Process, s.Exit, s.Released, s.InFlight, s.Leaving = Exited, "exit status 0", true, 0, ""
	})
	b.until("it runs again", time.Minute, func() bool {
		w := b.d.Intent.Workers["p/1"]
		return w.Phase == Ready && w.Generation == 2 && w.Crashes == 0
	})
}
