package main

import (
	"encoding/json"
	"time"

	"roundhouse/balancer/control"
)

// What the operator commands read of the admin API. Fields that they only
// pass on stay raw, so that --json prints what the API said.
type (
	// workersAnswer is GET /api/workers.
	workersAnswer struct {
		At      time.Time       `json:"at"`
		Workers []workerAnswer  `json:"-"`
		Raw     json.RawMessage `json:"workers"`
	}

	workerAnswer control.WorkerShown

	// poolsAnswer is GET /api/pools.
	poolsAnswer struct {
		At         time.Time       `json:"at"`
		Door       json.RawMessage `json:"door"`
		Supervisor json.RawMessage `json:"supervisor"`
		Pools      json.RawMessage `json:"pools"`
	}

	poolAnswer control.PoolShown

	// rotationAnswer is one of GET /api/rotations, and what a POST of rotate returns.
	rotationAnswer struct {
		ID      uint64     `json:"id"`
		Pool    string     `json:"pool"`
		Cause   string     `json:"cause"`
		State   string     `json:"state"` // running | done | rolled_back | halted
		Reason  *string    `json:"reason"`
		Done    []string   `json:"done"`
		Current *string    `json:"current"`
		Queue   []string   `json:"queue"`
		Waiting *string    `json:"waiting"`
		Canary  *string    `json:"canary"`
		Began   *time.Time `json:"began"`
		Ended   *time.Time `json:"ended"`
	}

	// rotateRequest is the body of POST …/rotate.
	rotateRequest struct {
		DryRun   bool `json:"dry_run,omitempty"`
		Continue bool `json:"continue,omitempty"`
		Abort    bool `json:"abort,omitempty"`
	}

	// turnAnswer is one turn that a rotation would take.
	turnAnswer struct {
		Worker   string `json:"worker"`
		Obstacle string `json:"obstacle"`
		Skipped  bool   `json:"skipped"`
	}

	// scheduleAnswer is one of GET /api/schedule.
	scheduleAnswer struct {
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

	// eventAnswer is one of GET /api/events.
	eventAnswer struct {
		ID     uint64    `json:"id"`
		At     time.Time `json:"at"`
		Pool   string    `json:"pool"`
		Worker string    `json:"worker"`
		Kind   string    `json:"kind"`
		Who    string    `json:"who"`
		Text   string    `json:"text"`
	}
)

// UnmarshalJSON reads the workers twice: as they are, and as far as they are
// understood here.
func (a *workersAnswer) UnmarshalJSON(text []byte) error {
	type plain workersAnswer
	if err := json.Unmarshal(text, (*plain)(a)); err != nil {
		return err
	}
	return json.Unmarshal(a.Raw, &a.Workers)
}
