package control

import (
	"time"

	"roundhouse/balancer/control/phase"
)

// The shapes of GET /api/workers and GET /api/pools: what a supervisor shows of
// its workers, a door that runs alone of its own, and what the operator commands
// read. Unknown is null, never 0 or absent.
type (
	// WorkersShown is GET /api/workers.
	WorkersShown struct {
		Schema  int           `json:"schema"`
		At      time.Time     `json:"at"`
		Workers []WorkerShown `json:"workers"`
	}

	// WorkerShown is one worker.
	WorkerShown struct {
		ID         string      `json:"id"`
		Pool       string      `json:"pool"`
		Name       string      `json:"name"`
		Driver     string      `json:"driver"`
		State      phase.Phase `json:"state"`
		Reason     *string     `json:"reason"`
		Since      time.Time   `json:"since"`
		URL        *string     `json:"url"`
		Models     []string    `json:"models"`
		Modalities []string    `json:"modalities"` // what a prompt may hold; null: it does not say
		KV         KV          `json:"kv"`
		Requests   Requests    `json:"requests"`
		Traffic    Traffic     `json:"traffic"`
		Device     Device      `json:"device"`
		Drain      *DrainShown `json:"drain"` // null unless draining
		NextTry    *time.Time  `json:"next_try"`
		LastError  *string     `json:"last_error"`
		Restarts   int         `json:"restarts"`
		Generation uint64      `json:"generation"`
		Started    *time.Time  `json:"started"`
		Version    *string     `json:"version"`
		Place      PlaceShown  `json:"place"`
	}

	// DrainShown is how long a worker is waited for.
	DrainShown struct {
		Deadline *time.Time `json:"deadline"`
	}

	// PlaceShown is where a worker runs.
	PlaceShown struct {
		Node      *string  `json:"node"` // the machine, of a Swarm's; null: where its driver is
		PID       *int     `json:"pid"`
		Container *string  `json:"container"`
		Image     *string  `json:"image"`
		GPUs      []string `json:"gpus"`
		NUMA      []int    `json:"numa"`
		CPUs      *string  `json:"cpus"`
	}

	// PoolsShown is GET /api/pools: what `roundhouse ps` prints above its workers.
	PoolsShown struct {
		Schema     int              `json:"schema"`
		At         time.Time        `json:"at"`
		Door       DoorShown        `json:"door"`
		Supervisor *SupervisorShown `json:"supervisor"` // null where a door runs alone
		Pools      []PoolShown      `json:"pools"`
		Canaries   []CanaryShown    `json:"canaries,omitempty"`
	}

	// DoorShown is the door.
	DoorShown struct {
		State   phase.Phase `json:"state"`
		Version *string     `json:"version"`
		Listen  *string     `json:"listen"`
		Streams int         `json:"streams"`
		Queued  int         `json:"queued"`
		Faults  []Fault     `json:"faults"` // what it could not take up
	}

	// SupervisorShown is the supervisor.
	SupervisorShown struct {
		State   string `json:"state"`
		Version string `json:"version"`
	}

	// PoolShown is one pool.
	PoolShown struct {
		Name     string        `json:"name"`
		Policy   string        `json:"policy"`
		Task     *string       `json:"task"` // null: the configuration does not say
		Desired  int           `json:"desired"`
		Ready    int           `json:"ready"`
		Rotation RotationShown `json:"rotation"`
	}

	// RotationShown is where a pool's rotation stands.
	RotationShown struct {
		State      string     `json:"state"`
		Next       *time.Time `json:"next"`
		Last       *time.Time `json:"last"`
		LastResult *string    `json:"last_result"`
	}
)

// Known turns a zero value into null.
func Known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
