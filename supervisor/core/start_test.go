package core

import (
	"testing"
	"time"
)

// A law: one worker's drain, pull, missing card, failed or stuck start delays no other
// worker's restart, in its own pool or in another one.
func TestOneWorkerDelaysNoOther(t *testing.T) {
	fail := func(b *bench) {
		b.see("p/1", func(s *Seen) {
			*s = Seen{Process: Exited, Generation: s.Generation, Exit: "exit status 1", Acked: true, Released: true, Free: -1}
		})
	}
	for name, trouble := range map[string]func(b *bench){
		"a drain with a long stream": func(b *bench) {
			b.see("p/1", func(s *Seen) { s.InFlight = 1 })
			b.command(Rotate(b.d, "p", []string{"1"}, b.now))
			b.until("p/1 drains", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Draining })
		},
		"a pull before the first start": func(b *bench) {
			b.d.Intent.Workers["p/1"] = Worker{Phase: Stopped, Then: ThenStart, Since: b.now}
			b.o.Workers["p/1"] = Seen{Process: Absent, Acked: true, Released: true, Free: -1}
			b.o.Prepared = map[string]string{}
			b.next() // asks for the image, which never comes
			b.see("p/1", func(s *Seen) { s.Busy = true })
		},
		"a pull within a start": func(b *bench) {
			fail(b)
			b.slow = map[string]bool{"p/1": true}
			b.until("p/1 starts", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Starting })
			b.see("p/1", func(s *Seen) { *s = Seen{Process: Absent, Busy: true, Acked: true, Released: true, Free: -1} })
			for range 11 {
				b.next()
			}
		},
		"a card that is missing": func(b *bench) {
			b.d.Pools[0].Workers[0].Lacks = "GPU 0000:18:00.0 is not in this machine"
			fail(b)
		},
		"a start that fails again and again": func(b *bench) {
			b.dies = map[string]bool{"p/1": true}
			fail(b)
			b.until("p/1 has failed", 5*time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Failures > 1 })
			b.until("p/1 starts", 5*time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Starting })
		},
		"a restart that is stuck": func(b *bench) {
			w := b.d.Intent.Workers["p/1"]
			w.Took = 10 * time.Second
			b.d.Intent.Workers["p/1"] = w
			b.hangs = map[string]bool{"p/1": true}
			fail(b)
			b.until("p/1 is stuck", 2*time.Minute, func() bool {
				w := b.d.Intent.Workers["p/1"]
				return w.Phase == Starting && !w.Launched.IsZero() && b.now.Sub(w.Launched) > 2*w.Took+slowStart
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			other := b.d.Pools[0]
			other.Name, other.Workers = "q", []Spec{{Name: "1", Hash: "h"}}
			b.d.Pools = append(b.d.Pools, other)
			b.d.Intent.Workers["q/1"] = b.d.Intent.Workers["p/2"]
			b.o.Workers["q/1"] = b.o.Workers["p/2"]
			trouble(b)
			for _, id := range []string{"p/2", "q/1"} {
				b.see(id, func(s *Seen) { s.Process, s.Exit, s.Released = Exited, "killed", true })
				took := b.until(id+" runs again", time.Hour, func() bool { w := b.d.Intent.Workers[id]; return w.Phase == Ready && w.Generation == 2 })
				if took > 5*time.Second {
					t.Errorf("%s: back after %v; want a few seconds", id, took)
				}
			}
		})
	}
}

// Two workers that are well load one after the other where parallel is 1: a machine's
// memory holds one load at a time.
func TestParallelHolds(t *testing.T) {
	b := newBench(t, 3)
	b.hangs = map[string]bool{"p/1": true, "p/2": true, "p/3": true}
	for id := range b.o.Workers {
		b.see(id, func(s *Seen) { s.Process, s.Exit, s.Released = Exited, "killed", true })
	}
	for range 60 {
		b.next()
		n := 0
		for _, w := range b.d.Intent.Workers {
			if w.Phase == Starting {
				n++
			}
		}
		if n > 1 {
			t.Fatalf("%d workers load at once: %+v", n, b.d.Intent.Workers)
		}
	}
}

// What has served goes before what never did.
func TestServedFirst(t *testing.T) {
	b := newBench(t, 2)
	b.d.Intent.Workers["p/1"] = Worker{Phase: Stopped, Then: ThenStart, Since: b.now}
	b.o.Workers["p/1"] = Seen{Process: Absent, Acked: true, Released: true, Free: -1}
	b.see("p/2", func(s *Seen) { s.Process, s.Exit, s.Released = Exited, "killed", true })
	b.until("one starts", time.Minute, func() bool { return b.told("started", "") })
	for _, e := range b.events {
		if e.Kind == "started" {
			if e.Worker != "p/2" {
				t.Errorf("%s is started first", e.Worker)
			}
			return
		}
	}
}

// A pull that takes longer than ready_timeout has its worker's time begin when its
// process is there.
func TestPullIsNotOfTheReadyTime(t *testing.T) {
	b := newBench(t, 1)
	b.see("p/1", func(s *Seen) { s.Process, s.Exit, s.Released = Exited, "killed", true })
	b.slow = map[string]bool{"p/1": true}
	b.until("p/1 starts", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Starting })
	b.see("p/1", func(s *Seen) { *s = Seen{Process: Absent, Busy: true, Acked: true, Released: true, Free: -1} })
	for range 3600 {
		b.next()
	}
	generation := b.d.Intent.Workers["p/1"].Generation
	b.see("p/1", func(s *Seen) {
		*s = Seen{Process: Alive, Generation: generation, Hash: "h", Acked: true, Reached: true, Free: -1}
	})
	limit := b.d.Pools[0].Ready
	for range int(limit/time.Second) - 1 {
		b.next()
	}
	if w := b.d.Intent.Workers["p/1"]; w.Phase != Starting {
		t.Fatalf("its ready_timeout has not passed since its process was there: %+v", w)
	}
	for range 3 {
		b.next()
	}
	if w := b.d.Intent.Workers["p/1"]; w.Phase != Failed {
		t.Errorf("its ready_timeout has passed: %+v", w)
	}
}

// A preparation that fails is a failed start, told and tried again later and later.
func TestPreparationOfAStartFails(t *testing.T) {
	b := newBench(t, 1)
	b.d.Intent.Workers["p/1"] = Worker{Phase: Stopped, Then: ThenStart, Since: b.now}
	b.o.Workers["p/1"] = Seen{Process: Absent, Acked: true, Released: true, Free: -1}
	b.o.Prepared = map[string]string{}
	asked := 0
	for range 60 {
		for _, a := range b.next().Actions {
			if a.Kind == Prepare {
				b.o.Prepared[a.Key] = "no such image"
				asked++
			}
			if a.Kind == Start {
				t.Fatal("it was started")
			}
		}
	}
	if w := b.d.Intent.Workers["p/1"]; asked < 4 || asked > 7 || w.Failures != asked || !b.told("failed", "no such image") {
		t.Errorf("asked %d times in a minute, %+v", asked, w)
	}
}

// A worker without a place is told once, keeps its pool from no turn, runs on where it
// runs, and starts once there is a place.
func TestUnplaced(t *testing.T) {
	b := newBench(t, 3)
	b.d.Pools[0].MinReady = 1
	spec := &b.d.Pools[0].Workers[0]
	spec.Lacks, spec.Hash = "GPU 0000:18:00.0 is not in this machine", "without"
	for range 10 {
		b.next()
	}
	if w := b.d.Intent.Workers["p/1"]; w.Phase != Ready || b.rotation().ID != 0 {
		t.Fatalf("it runs, and is left alone: %+v, %+v", w, b.rotation())
	}
	b.see("p/1", func(s *Seen) { s.Process, s.Exit, s.Released = Exited, "killed", true })
	b.until("it waits", time.Minute, func() bool { return b.told("unplaced", "0000:18:00.0") })
	b.command(Rotate(b.d, "p", nil, b.now))
	b.until("the others have turned", 10*time.Minute, func() bool { return b.rotation().State == Done })
	n := 0
	for _, e := range b.events {
		if e.Kind == "unplaced" {
			n++
		}
	}
	if w := b.d.Intent.Workers["p/1"]; n != 1 || w.Phase != Failed || len(b.rotation().Done) != 2 {
		t.Errorf("told %d times, %+v, %+v", n, w, b.rotation())
	}
	spec.Lacks, spec.Hash = "", "h"
	b.until("it is back", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Ready })
}
