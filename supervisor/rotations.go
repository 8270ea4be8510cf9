package supervisor

import (
	"roundhouse/balancer/control"
	"roundhouse/live"
	"roundhouse/supervisor/core"
)

// RotationShown is one rotation as the admin API shows it.
type RotationShown = live.Rotation

func (s *Supervisor) rotationShown(r core.Rotation) RotationShown {
	return RotationShown{
		ID: r.ID, Pool: r.Pool, Cause: r.Cause, State: string(r.State), Reason: control.Known(r.Reason),
		Done: append([]string{}, r.Done...), Current: control.Known(r.Current), Queue: append([]string{}, r.Queue...),
		Waiting: control.Known(r.Why), Canary: control.Known(r.Canary), Began: s.shown(r.Began), Ended: s.shown(r.Ended),
	}
}

// rotationList is each pool's last rotation.
func (s *Supervisor) rotationList() []RotationShown {
	list := []RotationShown{}
	for _, p := range s.plan.pools {
		if r, ok := s.memory.intent.Rotations[p.Name]; ok {
			list = append(list, s.rotationShown(r))
		}
	}
	return list
}

// rotations is the answer to GET /api/rotations.
func (s *Supervisor) rotations() map[string]any {
	return map[string]any{"schema": 1, "rotations": s.rotationList()}
}

// ScheduleShown is one pool's schedule as the admin API shows it.
type ScheduleShown = live.Schedule

// scheduleList is each pool's schedule.
func (s *Supervisor) scheduleList() []ScheduleShown {
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
	return list
}

// schedules is the answer to GET /api/schedule.
func (s *Supervisor) schedules() map[string]any {
	return map[string]any{"schema": 1, "schedules": s.scheduleList()}
}
