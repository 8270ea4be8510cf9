package main

import (
	"encoding/json"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/supervisor"
	"roundhouse/supervisor/journal"
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

		Canaries []control.CanaryShown `json:"canaries"`
	}

	poolAnswer control.PoolShown

	// rotationAnswer is one of GET /api/rotations, and what a POST of rotate returns.
	rotationAnswer supervisor.RotationShown

	// eventAnswer is one of GET /api/events.
	eventAnswer journal.Event
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
