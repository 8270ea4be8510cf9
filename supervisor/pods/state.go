package pods

import (
	"cmp"
	"time"

	"roundhouse/supervisor/schedule"
)

// Pool is what the configuration says about a pool's rotation.
type Pool struct {
	Name     string
	Plan     *schedule.Plan
	Drain    time.Duration
	Ready    time.Duration
	MinReady int // below 0: all pods but one
	Times    Times
}

// Times are the lengths of a rotation's waits. A zero one is the usual.
type Times struct {
	Look    time.Duration // between two looks
	Renews  time.Duration // between two words of the holder in the Lease
	Again   time.Duration // before an act that was refused, or has shown nothing yet
	Settles time.Duration // from when a mark is seen until an idle pod counts as drained: every door must have seen it
	Moves   time.Duration // that doors may take to move streams after a drain's deadline
	Proof   time.Duration // that a new pod must have been ready before the next turn
	Shrunk  time.Duration // that a pool must be whole with fewer pods before its owner is taken to want no more
}

var usual = Times{Look: time.Second, Renews: 5 * time.Second, Again: 5 * time.Second, Settles: 3 * time.Second, Moves: 15 * time.Second, Proof: 30 * time.Second, Shrunk: time.Minute}

// filled are the times with the usual ones where there are none.
func (t Times) filled() Times {
	return Times{
		Look: cmp.Or(t.Look, usual.Look), Renews: cmp.Or(t.Renews, usual.Renews),
		Again: cmp.Or(t.Again, usual.Again), Settles: cmp.Or(t.Settles, usual.Settles), Moves: cmp.Or(t.Moves, usual.Moves),
		Proof: cmp.Or(t.Proof, usual.Proof), Shrunk: cmp.Or(t.Shrunk, usual.Shrunk),
	}
}

// Pod is one pod as it is.
type Pod struct {
	Name, UID string
	Ready     bool
	Leaving   bool      // it is being deleted, or has ended
	Marked    time.Time // until when its requests may run; the zero time: it is not drained
	Grace     time.Duration
	Restarts  int
	Idle      bool   // no request runs in it, of any door
	Failing   string // why the door does not send it requests though it is ready; empty: it does
}

// serves reports whether clients can count on the pod.
func (p *Pod) serves() bool { return p.Ready && !p.Leaving && p.Marked.IsZero() && p.Failing == "" }

// State is what is remembered of a pool from one decision to the next.
type State struct {
	LastRun  time.Time `json:"last_run,omitzero"`
	Counter  uint64    `json:"counter"` // of rotations
	Rotation *Rotation `json:"rotation,omitempty"`
}

// Phase is how a rotation stands.
type Phase string

// The phases of a rotation; all but Running are ends.
const (
	Running Phase = "running"
	Done    Phase = "done"
	Halted  Phase = "halted"
)

// Rotation is one round of turns of a pool's pods.
type Rotation struct {
	ID      uint64    `json:"id"`
	Cause   string    `json:"cause"`
	State   Phase     `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Queue   []Named   `json:"queue,omitempty"` // still to turn
	Turn    *Turn     `json:"turn,omitempty"`
	Done    []string  `json:"done,omitempty"` // names of pods that were replaced
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Waiting time.Time `json:"waiting,omitzero"` // since when it cannot go on
	Why     string    `json:"why,omitempty"`    // it cannot
}

// Named is a pod that keeps its name and UID until it is gone.
type Named struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Stage is how far a turn has come.
type Stage string

// The stages of a turn.
const (
	Asking    Stage = "asking"    // whether the pod may be evicted
	Draining  Stage = "draining"  // until it is idle
	Evicting  Stage = "evicting"  // until the eviction is granted
	Replacing Stage = "replacing" // until another pod is ready
	Proving   Stage = "proving"   // until that pod has been ready for a while
)

// Turn is the replacement of one pod.
type Turn struct {
	Named
	Stage    Stage     `json:"stage"`
	Since    time.Time `json:"since"`              // of the stage
	Deadline time.Time `json:"deadline,omitzero"`  // of draining, then of the replacement
	Known    []string  `json:"known"`              // UIDs of the pods that were there before
	Next     Named     `json:"next,omitzero"`      // the pod that takes its place
	Restarts int       `json:"restarts,omitempty"` // of that pod when it was ready first
}

// Kind is what is to be done with a pod.
type Kind string

// The kinds of acts.
const (
	Ask    Kind = "ask" // whether it may be evicted
	Mark   Kind = "mark"
	Unmark Kind = "unmark"
	Evict  Kind = "evict"
)

// Act is something to be done now.
type Act struct {
	Kind  Kind
	Pod   Named
	Until time.Time // of a mark
}

// Answer is what became of the last act of a kind on a pod.
type Answer struct {
	At      time.Time
	Status  int // of the API server: 201; 0: it did not answer
	Message string
}

// Seen is what is.
type Seen struct {
	Pods    []Pod // in the order of their names
	Answers map[Key]Answer
}

// Key names the acts that an Answer is of.
type Key struct {
	Kind Kind
	UID  string
}

// Event is something that an operator may want to know.
type Event struct{ Pod, Kind, Text string }
