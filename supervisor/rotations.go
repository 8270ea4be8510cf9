package supervisor

import (
	"time"

	"roundhouse/balancer/control"
	"roundhouse/supervisor/core"
)

// RotationShown is one rotation as the admin API shows it.
type RotationShown struct {
	ID      uint64     `json:"id"`
	Pool    string     `json:"pool"`
	Cause   string     `json:"cause"`
	State   string     `json:"state"` // running | done | rolled_back | halted
	Reason  *string    `json:"reason"`
	Done    []string   `json:"done"`
	Current *string    `json:"current"`
	Queue   []string   `json:"queue"`
	Waiting *string    `json:"waiting"` // why the next turn cannot begin
	Canary  *string    `json:"canary"`
	Began   *time.Time `json:"began"`
	Ended   *time.Time `json:"ended"`
}

func (s *Supervisor) rotationShown(r core.Rotation) RotationShown {
	return RotationShown{
		ID: r.ID, Pool: r.Pool, Cause: r.Cause, State: string(r.State), Reason: control.Known(r.Reason),
		Done: append([]string{}, r.Done...), Current: control.Known(r.Current), Queue: append([]string{}, r.Queue...),
		Waiting: control.Known(r.Why), Canary: control.Known(r.Canary), Began: s.shown(r.Began), Ended: s.shown(r.Ended),
	}
}

// rotations is the answer to GET /api/rotations: each pool's last one.
func (s *Supervisor) rotations() map[string]any {
	list := []RotationShown{}
	for _, p := range s.plan.pools {
		if r, ok := s.memory.intent.Rotations[p.Name]; ok {
			list = append(list, s.rotationShown(r))
		}
	}
	return map[string]any{"schema": 1, "rotations": list}
}

// ScheduleShown is one pool's schedule as the admin API shows it.
type ScheduleShown struct {
	Pool       string     `json:"pool"`
	Schedule   *string    `json:"schedule"`
	Timezone   string     `json:"timezone"`
	Next       *time.Time `json:"next"`
	Off        bool       `json:"off"`
	OffUntil   *time.Time `json:"off_until"`
	Last       *time.Time `json:"last"`
	LastResult *string    `json:"last_result"`
	Blackout   []string   `json:"blackout"`
}

// schedules is the answer to GET /api/schedule.
func (s *Supervisor) schedules() map[string]any {
	list := []ScheduleShown{}
	for i, p := range s.plan.pools {
		cfg, c := s.plan.config.Pools[i].Rotation, s.memory.intent.Pools[p.Name]
		state := s.poolRotation(p)
		v := ScheduleShown{
			Pool: p.Name, Schedule: control.Known(cfg.Schedule), Timezone: p.Plan.Zone().String(), Next: s.nextRun(p), Off: c.Off,
			Last: state.Last, LastResult: state.LastResult, Blackout: append([]string{}, cfg.Blackout...),
		}
		if !c.OffUntil.IsZero() {
			until := c.OffUntil.UTC()
			v.OffUntil = &until
		}
		list = append(list, v)
	}
	return map[string]any{"schema": 1, "schedules": list}
}
