package core

import (
	"time"

	"roundhouse/balancer/control/phase"
	"roundhouse/supervisor/schedule"
)

// Desired is the state that should be.
type Desired struct {
	Parallel int // starts and turns at once on this machine
	Pools    []Pool
	Intent   Intent
}

// Pool is one pool as the configuration has it.
type Pool struct {
	Name     string
	Workers  []Spec
	MinReady int
	Drain    time.Duration
	Ready    time.Duration
	Grace    time.Duration // between the polite and the hard signal
	// Proven is how long a new configuration must have been ready before it is
	// taken for good and the next worker gets it.
	Proven time.Duration
	Plan   *schedule.Plan
	Canary *Canary

	// Surge has a rotation start one more worker before it takes any out.
	Surge bool
	// Relief is that worker. Nil: no device is free for it, and NoRelief says why.
	Relief   *Spec
	NoRelief string

	AfterRequests int64   // 0: never
	AfterTokens   int64   // 0: never
	MemoryGrowth  float64 // share of its first hour; 0: never
	Slowdown      float64 // share of its first hour; 0: never
}

// Canary is how the first worker of a roll-out is judged.
type Canary struct {
	Share       float64
	MinRequests int64
}

// Spec is one worker of a pool as the configuration has it.
type Spec struct {
	Name string
	Hash string // of all that a restart would change
	// Plain is Hash without which image a name stands for: a worker that was started
	// before anybody asked that has not changed for the answer.
	Plain  string
	Static bool // run by someone else: watched, never started or stopped
	Device bool // holds a device, which two failed starts put in quarantine
	Relief bool // there for the length of a rotation alone
	// Lacks says which device it has no place for; empty: it has a place. It is
	// not started; if it runs already, it runs on.
	Lacks string
}

// Phase is where a worker stands in its life.
type Phase = phase.Phase

// The phases that Next moves a worker through; the door's findings are not among
// them.
const (
	Starting    = phase.Starting
	Warming     = phase.Warming
	Ready       = phase.Ready
	Draining    = phase.Draining
	Drained     = phase.Drained
	Stopped     = phase.Stopped
	Failed      = phase.Failed
	Quarantined = phase.Quarantined
)

// Then is the act that follows a drain.
type Then string

// The acts that can follow a drain.
const (
	ThenHold   Then = "hold"   // stay drained until an operator undrains
	ThenStart  Then = "start"  // stop and start again
	ThenStop   Then = "stop"   // stop and stay stopped
	ThenRemove Then = "remove" // stop and forget
)

// Intent is the memory from one decision to the next.
type Intent struct {
	Workers   map[string]Worker     `json:"workers"`   // by pool/name
	Rotations map[string]Rotation   `json:"rotations"` // the last of each pool
	Pools     map[string]PoolRecord `json:"pools"`
	Counter   uint64                `json:"counter"` // of rotations
}

// Worker is where one worker stands.
type Worker struct {
	Phase      Phase     `json:"phase"`
	Since      time.Time `json:"since"`
	Reason     string    `json:"reason,omitempty"`
	Generation uint64    `json:"generation"` // rises at every start
	Deadline   time.Time `json:"deadline,omitzero"`
	Then       Then      `json:"then,omitempty"`
	Hash       string    `json:"hash"`           // of this generation's settings
	Good       string    `json:"good,omitempty"` // the last hash that became ready

	// Former is the value of Good before, as long as it may yet prove better.
	Former string `json:"former,omitempty"`

	Failures  int       `json:"failures,omitempty"` // failed starts in a row
	Crashes   int       `json:"crashes,omitempty"`  // in a row, each of which makes the next start wait longer
	Same      int       `json:"same,omitempty"`     // ends alike, each within loopWindow of the one before
	SameLast  time.Time `json:"same_last,omitzero"`
	Evidence  string    `json:"evidence,omitempty"` // how they were alike
	Restarts  int       `json:"restarts"`
	NextTry   time.Time `json:"next_try,omitzero"`
	LastError string    `json:"last_error,omitempty"`
	Started   time.Time `json:"started,omitzero"` // when this generation became ready
	// Launched is when this generation's process was there, and Took the time that
	// the last ready generation took from then on.
	Launched time.Time     `json:"launched,omitzero"`
	Took     time.Duration `json:"took,omitzero"`
	Forced   bool          `json:"forced,omitempty"` // its drain ended by its deadline

	Away        time.Time `json:"away,omitzero"`         // since when its driver does not answer
	Interrupted bool      `json:"interrupted,omitempty"` // it ended with its driver, and is not ready again yet

	// Of its first hour, with which memory and speed are compared.
	BaseMemory int64   `json:"base_memory,omitempty"`
	BaseSpeed  float64 `json:"base_speed,omitempty"`
}

// PoolRecord is the memory of a pool.
type PoolRecord struct {
	LastRun  time.Time `json:"last_run,omitzero"` // on the wall's clock
	OffUntil time.Time `json:"off_until,omitzero"`
	Off      bool      `json:"off,omitempty"`
	Scale    *int      `json:"scale,omitempty"` // by hand; nil: as configured
	// Traffic is the pool's traffic by the time of the day.
	Traffic schedule.Traffic `json:"traffic,omitzero"`
	// Run is the last scheduled run for which a quiet moment was chosen, Moment.
	Run    time.Time `json:"run,omitzero"`
	Moment time.Time `json:"moment,omitzero"`
	// Relief is the last configuration with which a relief became ready.
	Relief string `json:"relief,omitempty"`
	// Image is the identity of the pool's image when a start was last prepared.
	Image Image `json:"image,omitzero"`
	// Adapters are the names that were loaded into the pool's workers: a worker that has
	// one of them that is configured no longer is to unload it.
	Adapters []string `json:"adapters,omitempty"`
	// Rejected is the configuration that a roll-back refused: it is not tried
	// again until it changes or an operator says --continue.
	Rejected map[string]bool `json:"rejected,omitempty"` // by hash
}

// Image is a name and the image behind it, in the words of the image store.
type Image struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// RotationState is how a rotation stands.
type RotationState string

// The states of a rotation; all but Running are ends.
const (
	Running    RotationState = "running"
	Done       RotationState = "done"
	RolledBack RotationState = "rolled_back"
	Halted     RotationState = "halted"
)

// Rotation is one round of turns of a pool's workers.
type Rotation struct {
	ID      uint64        `json:"id"`
	Pool    string        `json:"pool"`
	Rollout bool          `json:"rollout,omitempty"` // some worker comes back with another configuration than before
	Cause   string        `json:"cause"`             // schedule, operator, configuration, memory, slowdown, requests, tokens
	State   RotationState `json:"state"`
	Reason  string        `json:"reason,omitempty"`
	Queue   []string      `json:"queue"`             // names still to turn
	Current string        `json:"current,omitempty"` // name whose turn it is
	From    uint64        `json:"from,omitempty"`    // its generation when the turn began
	Back    bool          `json:"back,omitempty"`    // it goes back to its former settings
	Done    []string      `json:"done"`
	Began   time.Time     `json:"began"`
	Ended   time.Time     `json:"ended,omitzero"`
	Waiting time.Time     `json:"waiting,omitzero"` // since when the next turn cannot begin
	Why     string        `json:"why,omitempty"`    // it cannot
	Canary  string        `json:"canary,omitempty"` // the worker that is being judged
	Since   time.Time     `json:"since,omitzero"`   // the judging began
	Again   int64         `json:"again,omitempty"`  // it is looked at once more after so many requests
}

// Clone returns a copy that shares nothing with in.
func (in Intent) Clone() Intent {
	out := Intent{
		Workers: make(map[string]Worker, len(in.Workers)), Rotations: make(map[string]Rotation, len(in.Rotations)),
		Pools: make(map[string]PoolRecord, len(in.Pools)), Counter: in.Counter,
	}
	for k, v := range in.Workers {
		out.Workers[k] = v
	}
	for k, v := range in.Rotations {
		v.Queue = append([]string(nil), v.Queue...)
		v.Done = append([]string(nil), v.Done...)
		out.Rotations[k] = v
	}
	for k, v := range in.Pools {
		if v.Rejected != nil {
			rejected := make(map[string]bool, len(v.Rejected))
			for h := range v.Rejected {
				rejected[h] = true
			}
			v.Rejected = rejected
		}
		if v.Scale != nil {
			n := *v.Scale
			v.Scale = &n
		}
		out.Pools[k] = v
	}
	return out
}
