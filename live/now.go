package live

import (
	"context"
	"io"
	"time"

	"roundhouse/balancer/control"
)

// Source is what is looked at: a supervisor, or a door that runs alone.
type Source interface {
	// Look tells how things stand. What it returns is not changed afterwards.
	Look(ctx context.Context) (Now, error)
	// InFlight lists what is in flight at all doors.
	InFlight(ctx context.Context) []control.InFlight
	// Events returns the kept events after a number, the oldest first.
	Events(after uint64, limit int) ([]Event, error)
	// Follow sends what happens from now on, until the function is called. Who does not
	// keep up misses some, and sees so by the numbers.
	Follow(ctx context.Context) (<-chan Event, func())
	// Log opens what a worker (pool/name), or the door, has written, and goes on.
	Log(ctx context.Context, of string, tail int) (io.ReadCloser, error)
}

// Event is what happened.
type Event struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Pool   string    `json:"pool,omitempty"`
	Worker string    `json:"worker,omitempty"` // pool/name
	Kind   string    `json:"kind"`
	Who    string    `json:"who"`
	Text   string    `json:"text"`
}

// Now is how things stand, as a source sees them.
type Now struct {
	Door       control.DoorShown
	Doors      []OneDoor
	Supervisor *control.SupervisorShown
	Journal    string // why it cannot be written; empty: it can
	Pools      []control.PoolShown
	Workers    []control.WorkerShown
	Rotations  []Rotation
	Schedules  []Schedule
	Canaries   []control.CanaryShown
	Counts     []Counts
}

// Counts is what one door has counted since it began.
type Counts struct {
	Door    string // tells its process from any other
	Pools   []control.PoolState
	Workers []WorkerCount
}

// WorkerCount is what a door has counted of a generation of a worker.
type WorkerCount struct {
	ID             string
	Generation     uint64
	Failed, Tokens int64
}

// OneDoor is one door of several.
type OneDoor struct {
	ID        string   `json:"id"`
	State     string   `json:"state"`
	Version   *string  `json:"version"`
	Streams   *int     `json:"streams"`
	Queued    *int     `json:"queued"`
	ReportAge *float64 `json:"report_age_seconds"`
	Error     *string  `json:"error"`
}

// Rotation is one rotation as the admin API shows it.
type Rotation struct {
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

// Schedule is one pool's schedule as the admin API shows it.
type Schedule struct {
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
