package core

import (
	"strings"
	"testing"
	"time"

	"roundhouse/supervisor/schedule"
)

// bench is one pool "p" that is looked at second by second, without chance: what
// is to happen is said, and what is decided is read.
type bench struct {
	t      *testing.T
	d      Desired
	o      Observed
	now    time.Time
	events []Event

	slow  map[string]bool // these starts are said to have ended by the test
	dies  map[string]bool // what is started of these ends at once
	hangs map[string]bool // and of these is never healthy
}

// newBench returns a pool of n workers that are ready and have nothing to do.
func newBench(t *testing.T, n int) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	p := Pool{Name: "p", MinReady: n - 1, Drain: 10 * time.Minute, Ready: 5 * time.Minute, Grace: time.Minute, Proven: 10 * time.Second}
	b.d = Desired{Parallel: 1, Intent: noIntent()}
	b.o = Observed{Doors: 1, Workers: map[string]Seen{}}
	for i := range n {
		name := string(rune('1' + i))
		p.Workers = append(p.Workers, Spec{Name: name, Hash: "h"})
		b.d.Intent.Workers["p/"+name] = Worker{Phase: Ready, Generation: 1, Hash: "h", Good: "h", Started: b.now, Since: b.now}
		b.o.Workers["p/"+name] = Seen{Process: Alive, Generation: 1, Hash: "h", Healthy: true, Warmed: true, Acked: true, Reached: true, Free: -1}
	}
	b.d.Pools = []Pool{p}
	return b
}

// next lets a second pass, decides, and does at once what is decided.
func (b *bench) next() Decision {
	b.now = b.now.Add(time.Second)
	b.o.Wall, b.o.Lease = b.now, b.now.Add(30*time.Second)
	d := Next(b.d, b.o, b.now)
	b.d.Intent, b.events = d.Intent, append(b.events, d.Events...)
	for _, a := range d.Actions {
		seen := b.o.Workers[a.Worker]
		switch a.Kind {
		case Start:
			if b.slow[a.Worker] {
				continue
			}
			seen = Seen{Process: Alive, Generation: a.Generation, Hash: a.Hash, Healthy: !b.hangs[a.Worker], Acked: true, Reached: true, Free: -1, Released: true}
			if b.dies[a.Worker] {
				seen.Process, seen.Exit = Exited, "exit status 1"
			}
		case Stop:
			seen.Process, seen.InFlight, seen.Released, seen.Exit = Exited, 0, true, "exit status 0"
		case Warm:
			seen.Warmed = true
		}
		b.o.Workers[a.Worker] = seen
	}
	return d
}

func (b *bench) see(id string, change func(*Seen)) {
	seen := b.o.Workers[id]
	change(&seen)
	b.o.Workers[id] = seen
}

// until decides second by second until ok holds.
func (b *bench) until(what string, within time.Duration, ok func() bool) time.Duration {
	b.t.Helper()
	from := b.now
	for !ok() {
		if b.now.Sub(from) > within {
			b.t.Fatalf("%s: not within %v; %+v; events %+v", what, within, b.d.Intent, b.events)
		}
		b.next()
	}
	return b.now.Sub(from)
}

func (b *bench) rotation() Rotation { return b.d.Intent.Rotations["p"] }

func (b *bench) told(kind, text string) bool {
	for _, e := range b.events {
		if e.Kind == kind && strings.Contains(e.Text, text) {
			return true
		}
	}
	return false
}

func (b *bench) command(in Intent, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	b.d.Intent = in
}

// §6.5: a stream that is longer than the drain's deadline is left alone until
// then; what the doors have not carried on ten seconds later is cut and counted.
func TestDrainDeadline(t *testing.T) {
	b := newBench(t, 2)
	b.see("p/1", func(s *Seen) { s.InFlight = 3 })
	b.command(Rotate(b.d, "p", []string{"1"}, b.now))
	b.until("it drains", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Draining })
	took := b.until("it is stopped", time.Hour, func() bool { return b.o.Workers["p/1"].Process == Exited })
	if want := b.d.Pools[0].Drain + resumeTime; took < want || took > want+3*time.Second {
		t.Errorf("stopped after %v; want %v", took, want)
	}
	if !b.told("drain_forced", "3 requests") {
		t.Errorf("events %+v", b.events)
	}
	b.until("the rotation is done", time.Hour, func() bool { return b.rotation().State == Done })
}

// §6.6: drained twice is drained; undrained in the middle it serves on, and is not
// restarted.
func TestDrainTwiceAndUndrain(t *testing.T) {
	b := newBench(t, 2)
	b.see("p/1", func(s *Seen) { s.InFlight = 1 })
	b.command(Drain(b.d, "p", "1", "test", b.now))
	first := b.d.Intent.Workers["p/1"]
	b.next()
	b.command(Drain(b.d, "p", "1", "test", b.now))
	if again := b.d.Intent.Workers["p/1"]; again != first {
		t.Errorf("%+v became %+v", first, again)
	}
	b.command(Undrain(b.d, "p", "1", "test", b.now))
	for range 60 {
		if d := b.next(); len(d.Actions) > 0 {
			t.Fatalf("%+v", d.Actions)
		}
	}
	if w := b.d.Intent.Workers["p/1"]; w.Phase != Ready || w.Generation != 1 {
		t.Errorf("%+v", w)
	}
}

// A worker that is stopped while it starts and undrained before it is gone was
// never ready, and is not taken for it: it goes on with its start.
func TestUndrainOfWhatNeverWasReady(t *testing.T) {
	b := newBench(t, 2)
	w := b.d.Intent.Workers["p/1"]
	w.Phase, w.Started, w.Deadline = Starting, time.Time{}, b.now.Add(time.Minute)
	b.d.Intent.Workers["p/1"] = w
	b.see("p/1", func(s *Seen) { s.Healthy, s.Warmed, s.Acked = false, false, false })
	b.command(StopWorker(b.d, "p", "1", "test", b.now))
	b.command(Undrain(b.d, "p", "1", "test", b.now))
	if w := b.d.Intent.Workers["p/1"]; w.Phase != Starting || !w.Deadline.Equal(b.now.Add(b.d.Pools[0].Ready)) {
		t.Errorf("%+v", w)
	}
}

// §6.9: a container that was made and never started, found by a new supervisor, is
// a failed start: it is replaced, and there is one of it.
func TestMadeAndNeverStarted(t *testing.T) {
	b := newBench(t, 2)
	w := b.d.Intent.Workers["p/1"]
	w.Phase, w.Generation, w.Deadline = Starting, 2, b.now.Add(time.Minute)
	b.d.Intent.Workers["p/1"] = w
	b.see("p/1", func(s *Seen) {
		s.Process, s.Generation, s.Exit, s.Released = Exited, 2, "created and never started", true
	})
	b.until("it is ready", time.Minute, func() bool { w := b.d.Intent.Workers["p/1"]; return w.Phase == Ready && w.Generation == 3 })
}

// §6.13: a pool of one turns by gap: it is drained, stopped, started, and nothing
// is drained for what cannot be started.
func TestPoolOfOneTurnsByGap(t *testing.T) {
	b := newBench(t, 1)
	b.o.Prepared = map[string]string{}
	b.command(Rotate(b.d, "p", nil, b.now))
	d := b.next()
	if len(d.Actions) != 1 || d.Actions[0].Kind != Prepare {
		t.Fatalf("%+v; want it prepared first", d.Actions)
	}
	if w := b.d.Intent.Workers["p/1"]; w.Phase != Ready {
		t.Fatalf("%+v while it is being prepared", w)
	}
	b.o.Prepared[d.Actions[0].Key] = ""
	b.until("the rotation is done", time.Minute, func() bool { return b.rotation().State == Done })
	if w := b.d.Intent.Workers["p/1"]; w.Generation != 2 || w.Phase != Ready {
		t.Errorf("%+v", w)
	}
}

// §6.30: a rotation that is due while another one runs is missed, and told; there
// is one at a time.
func TestDueWhileAnotherRuns(t *testing.T) {
	b := newBench(t, 2)
	plan, err := schedule.Parse(schedule.Spec{Cron: "*/5 * * * *", Timezone: "UTC", Missed: "once"})
	if err != nil {
		t.Fatal(err)
	}
	b.d.Pools[0].Plan = plan
	b.next()
	b.see("p/1", func(s *Seen) { s.InFlight = 1 }) // a long answer
	b.command(Rotate(b.d, "p", nil, b.now))
	b.until("the schedule's is missed", 6*time.Minute, func() bool { return b.told("missed", "still running") })
	if r := b.rotation(); r.ID != 1 || r.State != Running || r.Cause != Operator {
		t.Errorf("%+v", r)
	}
}

// Memory that creeps, speed that sinks, requests and tokens served: one worker
// turns, alone, and the event has the figures. What is within bounds turns nobody.
func TestTriggers(t *testing.T) {
	f := func(name string, set func(*Pool), first, then func(*Seen), want string) {
		t.Helper()
		b := newBench(t, 2)
		set(&b.d.Pools[0])
		b.see("p/1", first)
		b.now = b.now.Add(firstHour)
		for range 5 {
			b.next()
		}
		if r := b.rotation(); r.ID != 0 {
			t.Errorf("%s: %+v in its first hour", name, r)
		}
		b.see("p/1", then)
		for range 5 {
			b.next()
		}
		r := b.rotation()
		if want == "" {
			if r.ID != 0 {
				t.Errorf("%s: %+v", name, r)
			}
			return
		}
		if r.ID != 1 || !strings.Contains(r.Cause, want) || !b.told("rotation", want) {
			t.Errorf("%s: %+v; want the cause %q", name, r, want)
		}
		b.until("done", time.Hour, func() bool { return b.rotation().State == Done })
		if b.d.Intent.Workers["p/1"].Generation != 2 || b.d.Intent.Workers["p/2"].Generation != 1 {
			t.Errorf("%s: turned %+v", name, b.d.Intent.Workers)
		}
	}
	memory := func(p *Pool) { p.MemoryGrowth = 0.2 }
	f("memory", memory, func(s *Seen) { s.Memory = 1000 << 20 }, func(s *Seen) { s.Memory = 1201 << 20 }, "memory: 1201 MiB, 1000 MiB after its first hour")
	f("memory within bounds", memory, func(s *Seen) { s.Memory = 1000 << 20 }, func(s *Seen) { s.Memory = 1199 << 20 }, "")
	f("memory unknown", memory, func(s *Seen) { s.Memory = 0 }, func(s *Seen) { s.Memory = 0 }, "")
	slow := func(p *Pool) { p.Slowdown = 0.3 }
	f("slow", slow, func(s *Seen) { s.Speed = 100 }, func(s *Seen) { s.Speed = 69 }, "slowdown: 69.0 tokens/s, 100.0 after its first hour")
	f("slow within bounds", slow, func(s *Seen) { s.Speed = 100 }, func(s *Seen) { s.Speed = 71 }, "")
	f("idle is not slow", slow, func(s *Seen) { s.Speed = 100 }, func(s *Seen) { s.Speed = 0 }, "")
	f("requests", func(p *Pool) { p.AfterRequests = 500 }, func(s *Seen) { s.Served = 499 }, func(s *Seen) { s.Served = 500 }, "requests: 500 served")
	f("tokens", func(p *Pool) { p.AfterTokens = 1e6 }, func(s *Seen) { s.Tokens = 1e6 - 1 }, func(s *Seen) { s.Tokens = 1e6 }, "tokens: 1000000 served")
	f("never", func(*Pool) {}, func(*Seen) {}, func(s *Seen) { s.Served, s.Tokens, s.Memory = 1e12, 1e12, 1<<50 }, "")
}

// A crash loop: the first restart is at once, each that follows twice as late, at
// most five minutes; the events say when the next try is.
func TestCrashLoop(t *testing.T) {
	b := newBench(t, 2)
	var waits []time.Duration
	for range 12 {
		b.see("p/1", func(s *Seen) { s.Process, s.Exit, s.Released = Exited, "exit status 139", true })
		b.next()
		w := b.d.Intent.Workers["p/1"]
		if wait := w.NextTry.Sub(b.now); w.Phase == Failed {
			waits = append(waits, wait)
		} else {
			waits = append(waits, 0) // begun in the same step
		}
		b.until("it is back", 10*time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Ready })
	}
	want := []time.Duration{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i, w := range waits {
		if w != want[i]*time.Second {
			t.Errorf("crash %d waits %v; want %v", i+1, w, want[i]*time.Second)
		}
	}
	if !b.told("crashed", "exit status 139; next try in 4m16s") {
		t.Errorf("events %+v", b.events)
	}
	// One that has been ready for longer begins a new row.
	b.now = b.now.Add(settled + time.Minute)
	b.next()
	b.see("p/1", func(s *Seen) { s.Process, s.Exit = Exited, "exit status 1" })
	b.next()
	if w := b.d.Intent.Workers["p/1"]; w.Crashes != 0 || w.Same != 1 {
		t.Errorf("%+v", w)
	}
}

// A device that fails two starts is put in quarantine, and nothing tries it again
// but an operator.
func TestQuarantine(t *testing.T) {
	b := newBench(t, 2)
	b.d.Pools[0].Workers[0].Device = true
	b.command(StopWorker(b.d, "p", "1", "test", b.now))
	b.until("stopped", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Stopped })
	b.command(StartWorker(b.d, "p", "1", "test", b.now))
	fail := func() {
		b.until("it starts", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Starting })
		b.see("p/1", func(s *Seen) {
			s.Process, s.Healthy, s.Generation, s.Exit = Exited, false, b.d.Intent.Workers["p/1"].Generation, "the GPU has fallen off the bus"
		})
		b.next()
	}
	fail()
	fail()
	w := b.d.Intent.Workers["p/1"]
	if w.Phase != Quarantined || !b.told("quarantined", "failed 2 starts: ended before it was ready: the GPU has fallen off the bus") {
		t.Fatalf("%+v; events %+v", w, b.events)
	}
	for range 3600 {
		if d := b.next(); len(d.Actions) > 0 {
			t.Fatalf("%+v", d.Actions)
		}
	}
	b.command(StartWorker(b.d, "p", "1", "test", b.now))
	b.until("it is ready", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Ready })
}

// §6.21: a wall clock that jumps moves no deadline, and a drain takes as long as it
// was given.
func TestClockJumpsInADrain(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour} {
		b := newBench(t, 2)
		b.see("p/1", func(s *Seen) { s.InFlight = 1 })
		b.command(Rotate(b.d, "p", []string{"1"}, b.now))
		b.until("it drains", time.Minute, func() bool { return b.d.Intent.Workers["p/1"].Phase == Draining })
		deadline := b.d.Intent.Workers["p/1"].Deadline
		b.o.Wall = b.o.Wall.Add(jump)
		if d := Next(b.d, b.o, b.now); len(d.Actions) > 0 || d.Intent.Workers["p/1"].Deadline != deadline {
			t.Errorf("a jump of %v: %+v, %+v", jump, d.Actions, d.Intent.Workers["p/1"])
		}
	}
}

// A pool that turns by gap does so at the quietest moment within the jitter that
// was learned; it is chosen once, and a successor keeps to it.
func TestGapWaitsForTheQuietestMoment(t *testing.T) {
	b := newBench(t, 1)
	plan, err := schedule.Parse(schedule.Spec{Cron: "0 3 * * *", Timezone: "UTC", Missed: "once", Jitter: 2 * time.Hour, Salt: "p"})
	if err != nil {
		t.Fatal(err)
	}
	b.d.Pools[0].Plan = plan
	var c PoolRecord
	for bin := range 96 {
		c.Traffic.Learn(bin, 100)
	}
	for range 30 {
		c.Traffic.Learn(4*4+1, 3) // 04:15
	}
	c.LastRun = b.now.Add(-time.Hour)
	b.d.Intent.Pools["p"] = c
	b.now = time.Date(2026, 11, 21, 2, 59, 0, 0, time.UTC)
	b.until("the rotation begins", 3*time.Hour, func() bool { return b.rotation().ID == 1 })
	if at := b.now.Format("15:04:05"); at != "04:15:00" {
		t.Errorf("it began at %s; want 04:15:00", at)
	}
	if m := b.d.Intent.Pools["p"].Moment; m.Format("15:04") != "04:15" {
		t.Errorf("chosen: %v", m)
	}
	if !b.told("rotation", "begins: schedule") || b.told("rotation", "late") {
		t.Errorf("events %+v", b.events)
	}
}

// A roll-out's first worker is judged by what was counted at once, and by averages
// only if they are still off at a second look.
func TestCanaryIsLookedAtTwice(t *testing.T) {
	f := func(name string, first, second func(*Seen), want RotationState) {
		t.Helper()
		b := newBench(t, 3)
		p := &b.d.Pools[0]
		p.Canary, p.Proven = &Canary{Share: 0.1, MinRequests: 100}, 0
		for i := range p.Workers {
			p.Workers[i].Hash = "new"
			b.see("p/"+p.Workers[i].Name, func(s *Seen) { s.Served, s.TTFT, s.Speed = 1000, 0.1, 50 })
		}
		b.until("it is judged", time.Minute, func() bool { return b.rotation().Canary == "1" })
		see := func(served int64, how func(*Seen)) {
			b.see("p/1", func(s *Seen) { s.Served, s.TTFT, s.Speed = served, 0.1, 50; how(s) })
			for range 3 {
				b.next()
			}
		}
		see(99, first)
		if b.rotation().Canary != "1" {
			t.Errorf("%s: judged by 99 requests", name)
		}
		see(100, first)
		if certain := want == RolledBack && second == nil; !certain {
			see(149, first)
			if name != "as good" && b.rotation().Canary != "1" {
				t.Errorf("%s: not looked at again", name)
			}
			see(150, second)
		}
		b.until("the end", time.Hour, func() bool { return b.rotation().State != Running })
		if r := b.rotation(); r.State != want {
			t.Errorf("%s: %+v; want %s", name, r, want)
		}
	}
	good := func(*Seen) {}
	slow := func(s *Seen) { s.Speed = 20 }
	late := func(s *Seen) { s.TTFT = 2 }
	f("as good", good, good, Done)
	f("slow", slow, slow, RolledBack)
	f("late", late, late, RolledBack)
	f("slow for a moment", slow, good, Done)
	f("failing", func(s *Seen) { s.Served, s.Failed = s.Served-10, 10 }, nil, RolledBack)
}
