package control

import (
	"time"

	"roundhouse/balancer/control/phase"
	"roundhouse/configs"
)

// WorkerSet is the whole truth about what a door serves.
type WorkerSet struct {
	Schema  int    `json:"schema"`  // 1
	Epoch   uint64 `json:"epoch"`   // rises with each supervisor that takes over
	Version uint64 `json:"version"` // rises with each change within an epoch
	// Holder tells the supervisor by its journal: the same one started again takes
	// over at once, any other waits until the lease of the last one has ended.
	Holder string `json:"holder,omitempty"`
	// PeerToken is shown to the admin APIs that door.peers names.
	PeerToken string `json:"peer_token,omitempty"`

	Door    configs.Door     `json:"door"`
	Log     configs.Log      `json:"log"`
	OTLP    configs.OTLP     `json:"otlp"`
	Pools   []Pool           `json:"pools"`
	Routes  []configs.Route  `json:"routes"`
	Plugins []configs.Plugin `json:"plugins"` // of the kinds that a door runs
	// Keys are those made at run time, beside the door's own. Keyed has the door ask for a
	// key also where there is none: the last one's end must not let everybody in.
	Keys  []configs.Key `json:"keys,omitempty"`
	Keyed bool          `json:"keyed,omitempty"`
	// DrainSeconds is how long streams may go on at least once the door is asked to
	// end: the longest drain_timeout.
	DrainSeconds float64 `json:"drain_seconds,omitempty"`
}

// Pool is what a door must know of a pool.
type Pool struct {
	Name   string   `json:"name"`
	Policy string   `json:"policy"`
	Task   string   `json:"task,omitempty"`
	Driver string   `json:"driver,omitempty"` // for those who look; empty: static
	Models []string `json:"models"`           // served names; empty: learned from the workers
	// Adapters are the names that are being loaded into the workers beside their models: a
	// worker serves one once it lists it.
	Adapters     []string       `json:"adapters,omitempty"`
	ReasoningEnd string         `json:"reasoning_end,omitempty"`
	Scrape       configs.Scrape `json:"scrape"`
	Canary       *Canary        `json:"canary,omitempty"` // while a roll-out is judged
	// PatienceSeconds is how long requests wait here at least, whatever the queue's
	// max_wait: a turn leaves the pool with nobody until its worker is ready again.
	PatienceSeconds float64  `json:"patience_seconds,omitempty"`
	Workers         []Worker `json:"workers"`
}

// Canary gives one worker a fixed share of its pool's requests.
type Canary struct {
	Worker string  `json:"worker"`
	Share  float64 `json:"share"`
}

// Worker is one worker as the supervisor wants the door to treat it.
type Worker struct {
	Name       string `json:"name"`
	URL        string `json:"url"`
	APIKey     string `json:"api_key,omitempty"` // plain: this socket is private, and the door must send it
	Generation uint64 `json:"generation"`        // rises at every restart; clears all that was learned of this worker
	Kind       string `json:"kind"`              // "roundhouse" (status stream) or "vllm" (scraped)
	KVTokens   int64  `json:"kv_tokens,omitempty"`

	// State is what the supervisor wants: ready, draining or starting
	// (known, but not to be used). The door's own findings (ejected,
	// unreachable) come back in its State.
	State    phase.Phase `json:"state"`
	Reason   string      `json:"reason,omitempty"`
	Deadline *time.Time  `json:"deadline,omitempty"` // of a drain: what is left then is resumed elsewhere
}

// Ack answers a PUT of a WorkerSet.
type Ack struct {
	Door    string `json:"door"`
	Epoch   uint64 `json:"epoch"`
	Version uint64 `json:"version"`
	// LeaseSeconds is how long from now this door obeys no other epoch than
	// this one. A destructive action must end within it.
	LeaseSeconds float64 `json:"lease_seconds"`
}
