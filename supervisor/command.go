package supervisor

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
)

// commandWorker does POST /api/workers/{pool}/{name}/{verb}.
func (s *Supervisor) commandWorker(r *http.Request) (any, error) {
	pool, name, verb := r.PathValue("pool"), r.PathValue("name"), r.PathValue("verb")
	by, now := control.Asker(r), s.clock.Now()
	var next core.Intent
	var err error
	switch verb {
	case "drain":
		next, err = core.Drain(s.desired(), pool, name, by, now)
	case "undrain":
		next, err = core.Undrain(s.desired(), pool, name, by, now)
	case "stop":
		next, err = core.StopWorker(s.desired(), pool, name, by, now)
	case "start":
		next, err = core.StartWorker(s.desired(), pool, name, by, now)
	case "rotate":
		return s.rotate(r, pool, []string{name})
	default:
		return nil, fmt.Errorf("%q: %w; there are drain, undrain, stop, start and rotate", verb, core.ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	s.events.noteBy(by, pool, workerid.Of(pool, name), verb, "asked for")
	s.memory.remember(next)
	s.publish()
	return map[string]any{"schema": 1, "worker": s.workerShown(pool, name)}, nil
}

// RotateCommand is the body of a rotate command; it may be empty.
type RotateCommand struct {
	DryRun   bool `json:"dry_run,omitempty"`
	Continue bool `json:"continue,omitempty"`
	Abort    bool `json:"abort,omitempty"`
}

// Body reads a small JSON body, which may be empty.
func Body(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the body: %w", err)
	}
	return nil
}

// rotate begins, continues or aborts a rotation, or tells what one would do.
func (s *Supervisor) rotate(r *http.Request, pool string, which []string) (any, error) {
	var ask RotateCommand
	if err := Body(r, &ask); err != nil {
		return nil, err
	}
	by, now := control.Asker(r), s.clock.Now()
	var next core.Intent
	var err error
	verb := "rotate"
	switch {
	case ask.Abort:
		verb = "abort"
		next, err = core.Abort(s.desired(), pool, by, now)
	case ask.Continue:
		verb = "continue"
		clear(s.preparing.prepared) // what was not there may be by now
		next, err = core.Continue(s.desired(), pool, now)
	default:
		next, err = core.Rotate(s.desired(), pool, which, now)
	}
	if err != nil {
		return nil, err
	}
	if ask.DryRun {
		d := s.desired()
		d.Intent = next
		return map[string]any{"schema": 1, "dry_run": true, "turns": core.Preview(d, s.observe(now), pool)}, nil
	}
	s.events.noteBy(by, pool, "", verb, "asked for")
	s.memory.remember(next)
	return map[string]any{"schema": 1, "rotation": s.rotationShown(next.Rotations[pool])}, nil
}

// commandPool does POST /api/pools/{pool}/{verb}.
func (s *Supervisor) commandPool(r *http.Request) (any, error) {
	pool := r.PathValue("pool")
	switch r.PathValue("verb") {
	case "rotate":
		return s.rotate(r, pool, nil)
	case "scale":
		var ask struct {
			Workers *int `json:"workers"`
		}
		if err := Body(r, &ask); err != nil {
			return nil, err
		}
		if ask.Workers == nil {
			return nil, errors.New("the body is {\"workers\": N}")
		}
		return s.scale(control.Asker(r), pool, *ask.Workers)
	}
	return nil, fmt.Errorf("%q: %w; there are rotate and scale", r.PathValue("verb"), core.ErrUnknown)
}

// scale changes the number of a pool's workers until the file is reloaded with
// another one.
func (s *Supervisor) scale(by, name string, n int) (any, error) {
	for _, p := range s.plan.file.Pools {
		if p.Name != name {
			continue
		}
		if n < 1 || n > 1024 {
			return nil, fmt.Errorf("%d workers: give 1 to 1024", n)
		}
		if p.Driver == "static" || !isCounted(p.Workers) {
			return nil, core.Conflictf("the workers of %s have names of their own in the configuration; add or remove their blocks", name)
		}
		next := s.memory.intent.Clone()
		c := next.Pools[name]
		c.Scale = &n
		next.Pools[name] = c
		plan, err := s.deploymentOf(s.plan.file, scales(next))
		if err == nil {
			err = plan.homeless(s.plan)
		}
		if err != nil {
			return nil, err
		}
		s.enact(plan)
		s.memory.remember(next)
		s.events.noteBy(by, name, "", "scale", fmt.Sprintf("%d workers, %d in the configuration", n, len(p.Workers)))
		return map[string]any{"schema": 1, "pool": name, "workers": n}, nil
	}
	return nil, fmt.Errorf("pool %q: %w", name, core.ErrUnknown)
}

func isCounted(list []configs.Worker) bool {
	for i, w := range list {
		if w.Name != strconv.Itoa(i+1) {
			return false
		}
	}
	return true
}

// replaceable refuses what only a restart can change.
func (s *Supervisor) replaceable(cfg *configs.Config) error {
	old := s.options.Config
	switch {
	case cfg.StateDir != old.StateDir:
		return fmt.Errorf("state_dir: it is %s while this program runs; `roundhouse up` again changes it", old.StateDir)
	case cfg.Admin != old.Admin:
		return errors.New("admin: it changes with a restart of the supervisor alone")
	case cfg.Door.Listen != old.Door.Listen:
		return fmt.Errorf("door.listen: it is %s while this program runs; `roundhouse up` again changes it", old.Door.Listen)
	}
	if pair := cfg.Door.TLS; pair != nil && len(s.options.Doors) == 0 { // doors elsewhere have files of their own
		if _, err := tls.LoadX509KeyPair(pair.Cert, pair.Key); err != nil {
			return fmt.Errorf("door.tls: %w", err)
		}
	}
	return nil
}

// ScheduleCommand is the body of a schedule command: it turns a pool's schedule off
// and on.
type ScheduleCommand struct {
	Pool  string     `json:"pool,omitempty"` // empty: all
	Off   bool       `json:"off"`
	Until *time.Time `json:"until,omitempty"` // off: until then; nil: until on
}

// commandSchedule does POST /api/schedule.
func (s *Supervisor) commandSchedule(r *http.Request) (any, error) {
	var ask ScheduleCommand
	if err := Body(r, &ask); err != nil {
		return nil, err
	}
	next, found := s.memory.intent.Clone(), false
	for _, p := range s.plan.pools {
		if ask.Pool != "" && ask.Pool != p.Name {
			continue
		}
		found = true
		c := next.Pools[p.Name]
		c.Off, c.OffUntil = ask.Off, time.Time{}
		text := "is on"
		if ask.Off {
			text = "is off"
			if ask.Until != nil {
				c.OffUntil = ask.Until.UTC()
				text += " until " + c.OffUntil.Format(time.RFC3339)
			}
		}
		next.Pools[p.Name] = c
		s.events.noteBy(control.Asker(r), p.Name, "", "schedule", text)
	}
	if !found {
		return nil, fmt.Errorf("pool %q: %w", ask.Pool, core.ErrUnknown)
	}
	s.memory.remember(next)
	return s.schedules(), nil
}
