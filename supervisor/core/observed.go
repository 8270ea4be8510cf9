package core

import "time"

// Observed is the state that is seen.
type Observed struct {
	Wall     time.Time       // the clock on the wall, for schedules; it may jump
	Lease    time.Time       // until when every living door obeys this supervisor alone
	Doors    int             // living doors
	DiskFull bool            // the journal cannot be written: no rotation begins
	Workers  map[string]Seen // by pool/name
	// Prepared holds how preparations ended, those for a turn by PreparedKey and
	// those for a start by StartKey: empty for well. Nil: this machine prepares nothing.
	Prepared map[string]string
}

// Process is the known state of a worker's process or container.
type Process string

// The states of a process. Unknown is not Absent: it leads to no action.
const (
	Unknown Process = ""
	Absent  Process = "absent"
	Alive   Process = "running"
	Exited  Process = "exited"
)

// Seen is one worker as it is.
type Seen struct {
	Process    Process
	Generation uint64 // of the process
	Hash       string // of the process's settings
	Exit       string // how it ended
	Killed     bool   // by somebody else's hand, and not for want of memory
	Busy       bool   // an act of ours on it has not ended
	Launched   bool   // the start of this generation has returned
	Failure    string // how the last act on this generation failed
	// Interrupted: its driver was away when it ended, or when the act failed, which
	// says nothing of the worker.
	Interrupted bool
	// Leaving says why its process will end though nobody here asks for it; empty: it
	// stays. LeavesIn is how long its requests may still run there.
	Leaving  string
	LeavesIn time.Duration

	Healthy   bool
	Unhealthy string // why not; empty: not asked yet, or it is
	Down      bool   // it does not answer for so long that it counts as dead
	Hung      bool   // has requests and makes no progress
	Warmed    bool   // has answered a real request in this generation
	WarmError string // the warm-up's failure that makes it useless

	Acked    bool          // every living door has acknowledged the newest worker set
	Reached  bool          // some door that has that set has had an answer from this generation
	InFlight int           // over all living doors
	Oldest   time.Duration // of them
	Released bool          // its device's memory is free again

	Charged int64 // tokens that the doors have booked on it
	Free    int64 // tokens that it has room for; below zero: unknown
	Served  int64 // in this generation
	Failed  int64 // in this generation
	Tokens  int64 // in this generation
	Memory  int64 // bytes of host memory; 0: unknown
	Speed   float64
	TTFT    float64
}
