package supervisor

import (
	"encoding/json"
	"reflect"
	"sort"
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
)

// rotationView is one rotation as the admin API shows it.
type rotationView struct {
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

func (s *Supervisor) rotationView(r core.Rotation) rotationView {
	return rotationView{
		ID: r.ID, Pool: r.Pool, Cause: r.Cause, State: string(r.State), Reason: known(r.Reason),
		Done: append([]string{}, r.Done...), Current: known(r.Current), Queue: append([]string{}, r.Queue...),
		Waiting: known(r.Why), Canary: known(r.Canary), Began: s.shown(r.Began), Ended: s.shown(r.Ended),
	}
}

// rotations is the answer to GET /api/rotations: each pool's last one.
func (s *Supervisor) rotations() map[string]any {
	list := []rotationView{}
	for _, p := range s.plan.pools {
		if r, ok := s.intent.Rotations[p.Name]; ok {
			list = append(list, s.rotationView(r))
		}
	}
	return map[string]any{"schema": 1, "rotations": list}
}

// scheduleView is one pool's schedule.
type scheduleView struct {
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
	list := []scheduleView{}
	for i, p := range s.plan.pools {
		cfg, c := s.plan.config.Pools[i].Rotation, s.intent.Pools[p.Name]
		state := s.poolRotation(p)
		v := scheduleView{
			Pool: p.Name, Schedule: known(cfg.Schedule), Timezone: p.Plan.Zone().String(), Next: s.nextRun(p), Off: c.Off,
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

// changed lists the settings that differ between two configurations, by their
// path, without their values: some are secret.
func changed(old, next *configs.Config) []string {
	var a, b any
	decode := func(c *configs.Config, into *any) {
		if data, err := json.Marshal(c); err == nil {
			_ = json.Unmarshal(data, into) // it was made a line above
		}
	}
	decode(old, &a)
	decode(next, &b)
	out := []string{}
	compare(&out, "", a, b)
	sort.Strings(out)
	return out
}

func compare(out *[]string, path string, a, b any) {
	ma, okA := a.(map[string]any)
	mb, okB := b.(map[string]any)
	if !okA || !okB {
		la, okA := a.([]any)
		lb, okB := b.([]any)
		if okA && okB && named(la) && named(lb) {
			ma, mb = byName(la), byName(lb)
		} else {
			if !reflect.DeepEqual(a, b) {
				*out = append(*out, path)
			}
			return
		}
	}
	keys := map[string]bool{}
	for k := range ma {
		keys[k] = true
	}
	for k := range mb {
		keys[k] = true
	}
	for k := range keys {
		sub := k
		if path != "" {
			sub = path + "." + k
		}
		compare(out, sub, ma[k], mb[k])
	}
}

func named(list []any) bool {
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		if _, ok := m["name"].(string); !ok {
			return false
		}
	}
	return len(list) > 0
}

func byName(list []any) map[string]any {
	out := map[string]any{}
	for _, v := range list {
		m := v.(map[string]any)
		out[m["name"].(string)] = m
	}
	return out
}
