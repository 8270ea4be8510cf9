package control

import (
	"time"

	"roundhouse/balancer/control/phase"
)

// State is what a door says of itself and of the workers as it sees them.
type State struct {
	Schema  int         `json:"schema"` // 1
	Door    string      `json:"door"`   // its id
	PID     int         `json:"pid"`
	At      time.Time   `json:"at"`
	Phase   phase.Phase `json:"state"` // ready, draining
	Build   string      `json:"version"`
	Listen  string      `json:"listen"` // the address it really has
	Epoch   uint64      `json:"epoch"`
	Set     uint64      `json:"set"` // version of the worker set in force
	Streams int         `json:"streams"`
	Queued  int         `json:"queued"`
	Peers   int         `json:"peers,omitempty"` // other doors that this one hears of
	Faults  []Fault     `json:"faults,omitempty"`

	Workers []WorkerState `json:"workers"`
	Pools   []PoolState   `json:"pools"`

	Canaries []CanaryShown `json:"canaries,omitempty"`
}

// Fault is what a door could not take up: it goes on with what it had before.
type Fault struct {
	What  string    `json:"what"` // "certificate", "plugins", "worker_set"
	Error string    `json:"error"`
	Since time.Time `json:"since"`
}

// WorkerState is one worker as this door sees it. Unknown is nil, never 0.
type WorkerState struct {
	ID         string      `json:"id"` // pool/name
	Generation uint64      `json:"generation"`
	State      phase.Phase `json:"state"`
	Reason     string      `json:"reason,omitempty"`
	Since      time.Time   `json:"since"`
	Reached    bool        `json:"reached"` // this door has had an answer from it in this generation
	Models     []string    `json:"models"`
	Modalities []string    `json:"modalities,omitempty"` // what a prompt may hold, if it says that

	KV       KV       `json:"kv"`
	Requests Requests `json:"requests"`

	// Since this generation began; what rotation triggers and roll-outs judge by.
	Served          int64   `json:"served"`
	Failed          int64   `json:"failed"`
	Tokens          int64   `json:"tokens"`
	TTFTSeconds     float64 `json:"ttft_seconds"`      // moving average
	TokensPerSecond float64 `json:"tokens_per_second"` // moving average of one stream
	// PatienceSeconds is how long it may be silent with what is there now, by the
	// lengths of prompts and its learned rate.
	PatienceSeconds float64 `json:"patience_seconds,omitempty"`

	// As its own metrics say, now and then.
	PrefixHits  *float64 `json:"prefix_hits,omitempty"` // share of the prompt tokens looked up
	Preemptions *int64   `json:"preemptions,omitempty"`
	Device      *Device  `json:"device,omitempty"`
}

// Traffic is what the worker has served, as the admin API shows it.
func (w *WorkerState) Traffic() Traffic {
	return Traffic{
		Served: &w.Served, Failed: &w.Failed, Tokens: &w.Tokens, TTFTSeconds: Known(w.TTFTSeconds),
		TokensPerSecond: Known(w.TokensPerSecond), PrefixHits: w.PrefixHits, Preemptions: w.Preemptions,
	}
}

// KV is the ledger's account of one worker.
type KV struct {
	CapacityTokens   *int64   `json:"capacity_tokens"`
	ChargedTokens    int64    `json:"charged_tokens"`
	ForeignTokens    int64    `json:"foreign_tokens"`
	ElsewhereTokens  int64    `json:"elsewhere_tokens,omitempty"` // charged by other doors
	ReportedTokens   *int64   `json:"reported_tokens"`
	ReportAgeSeconds *float64 `json:"report_age_seconds"`
	Usage            *float64 `json:"usage"` // (charged + elsewhere + foreign) / capacity
}

// Requests counts what this door has at a worker, and what the worker says.
type Requests struct {
	InFlight      int      `json:"in_flight"`           // of this door; a drain is done when the sum over all doors is 0
	Elsewhere     int      `json:"elsewhere,omitempty"` // in flight of other doors, as they say
	Running       *int     `json:"running"`
	Waiting       *int     `json:"waiting"`
	PrefillTokens *int64   `json:"prefill_tokens"`
	OldestSeconds *float64 `json:"oldest_seconds"`
}
