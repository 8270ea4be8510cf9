// Package phase names the states of a worker, as the door, the supervisor, the
// commands and the dashboards show them. It is a leaf.
package phase

// Phase is where a worker stands in its life, or what a door finds it to be.
// The states of a door itself are three of them: starting, ready and draining.
type Phase string

// The phases that a supervisor gives a worker. A door that is told of a worker
// knows the ready, the draining and the starting.
const (
	Starting    Phase = "starting"    // its process is asked for, or not yet healthy
	Warming     Phase = "warming"     // healthy; a real completion is on its way
	Ready       Phase = "ready"       // takes requests
	Draining    Phase = "draining"    // takes no new ones
	Drained     Phase = "drained"     // has none; held, or being stopped
	Stopped     Phase = "stopped"     // by an operator, or not yet begun
	Failed      Phase = "failed"      // waits for its next try
	Quarantined Phase = "quarantined" // its device failed two starts
)

// The findings of a door about a worker that is to be ready.
const (
	Ejected     Phase = "ejected"     // its breaker is open
	Unreachable Phase = "unreachable" // it has not answered this door in its generation
)
