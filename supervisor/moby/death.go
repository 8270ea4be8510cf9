package moby

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sys/unix"

	"roundhouse/supervisor/driver"
)

const (
	// Killed is the exit code of what SIGKILL has ended, whoever sent it.
	Killed = 128 + int(unix.SIGKILL)
	// lateSign is how long after a container's end an engine may come to tell that it
	// was killed for want of memory.
	lateSign = 2 * time.Second
	// kept is how long what is known of a container is kept that nobody asks for.
	kept = time.Hour
)

// Deaths tells containers that the kernel killed for want of memory from those that
// somebody killed: both end with the same exit code. An engine hears of the first from
// the kernel by another way than of the end, and either may come first:
//
//   - The container's state has it (OOMKilled) where the engine heard of it first; in
//     engines from 23 on also where it heard later.
//   - The event "oom" comes in each engine, before the end or after it.
//   - Neither comes where the machine as a whole was out of memory and the engine uses
//     control groups of version 1, and in some versions now and then. What the group
//     itself has counted is gone with the container; what is left is how many
//     processes the kernel has killed, where the kernel is this machine's.
//
// A hand that killed it by the engine has left the event "kill". Its zero value knows
// nothing yet.
type Deaths struct {
	mu    sync.Mutex
	known map[string]*sight // by container
}

// sight is what is known of one container.
type sight struct {
	kills   int64 // by the kernel, before it was last seen running; -1: it never was
	judged  bool
	starved bool
	asked   time.Time
}

// witness is what Deaths asks an engine.
type witness interface {
	ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error)
	Events(ctx context.Context, options events.ListOptions) (<-chan events.Message, <-chan error)
}

// of returns what is known of a container, and drops what nobody asks for any more.
// The caller holds mu.
func (d *Deaths) of(id string) *sight {
	now := time.Now()
	s, ok := d.known[id]
	if !ok {
		if d.known == nil {
			d.known = map[string]*sight{}
		}
		for other, o := range d.known {
			if now.Sub(o.asked) > kept {
				delete(d.known, other)
			}
		}
		s = &sight{kills: -1}
		d.known[id] = s
	}
	s.asked = now
	return s
}

// Runs notes that a container was running when the kernel had killed as many.
func (d *Deaths) Runs(id string, kills int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.of(id)
	s.kills, s.judged = kills, false
}

// Starved reports whether a container that has ended was killed for want of memory. It may
// wait for lateSign for the first answer about a container, and then knows it. kills
// counts what this machine's kernel has killed; nil where that is not the container's.
func (d *Deaths) Starved(ctx context.Context, w witness, c container.InspectResponse, kills func() int64) bool {
	if c.State.OOMKilled || c.State.ExitCode != Killed {
		return c.State.OOMKilled
	}
	d.mu.Lock()
	s := *d.of(c.ID)
	d.mu.Unlock()
	if s.judged {
		return s.starved
	}
	measured := kills != nil && s.kills >= 0
	if !measured || kills() > s.kills { // else the kernel has killed nobody
		oom, hand := signs(ctx, w, c)
		s.starved = oom || measured && !hand
	}
	if ctx.Err() != nil {
		return s.starved // not all could be asked
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.of(c.ID)
	now.judged, now.starved = true, s.starved
	return s.starved
}

// signs are those of a container's end that come late, if any: that it was killed for
// want of memory, or by a hand. It waits for them until lateSign after the end, on the
// engine's own clock.
func signs(ctx context.Context, w witness, c container.InspectResponse) (oom, hand bool) {
	ended, err := time.Parse(time.RFC3339Nano, c.State.FinishedAt)
	if err != nil {
		return false, false // it has not even begun
	}
	stream, cancel := context.WithTimeout(ctx, 2*lateSign)
	defer cancel()
	messages, errs := w.Events(stream, events.ListOptions{
		Since: c.State.StartedAt, Until: ended.Add(lateSign).Format(time.RFC3339Nano),
		Filters: filters.NewArgs(filters.Arg("type", "container"), filters.Arg("container", c.ID), filters.Arg("event", "oom"), filters.Arg("event", "kill")),
	})
	for open := true; open; {
		select {
		case m := <-messages:
			switch {
			case m.Action == events.ActionOOM:
				return true, false
			case m.Action == events.ActionKill && m.Actor.Attributes["signal"] == "9":
				return false, true
			}
		case err := <-errs:
			if open = false; err != nil && !errors.Is(err, io.EOF) && stream.Err() == nil {
				driver.Wait(stream, min(lateSign, time.Until(ended.Add(lateSign)))) // it tells no events: its state may follow
			}
		}
	}
	again, err := w.ContainerInspect(ctx, c.ID)
	return err == nil && again.State != nil && again.State.OOMKilled, false
}
