package control

import "time"

// CanaryPhase is where the trial of a route's new model stands.
type CanaryPhase string

// The phases.
const (
	CanaryRunning    CanaryPhase = "running"
	CanaryPromoted   CanaryPhase = "promoted"
	CanaryRolledBack CanaryPhase = "rolled_back"
)

// CanaryState is what doors tell each other of a trial, and write down.
type CanaryState struct {
	Route  string      `json:"route"`
	Model  string      `json:"model"`
	Plan   string      `json:"plan"`   // names the block that it goes by
	Serial uint64      `json:"serial"` // rises with each change
	Phase  CanaryPhase `json:"state"`
	Step   int         `json:"step"`
	Waits  bool        `json:"waits,omitempty"` // all steps are done, and an operator is to promote it
	Reason string      `json:"reason,omitempty"`
	Since  time.Time   `json:"since"` // of the step, or of its end
	// Kept is which conversations began where: eight bytes each, little-endian, the last bit
	// set at the model on trial.
	Kept []byte `json:"kept,omitempty"`
}

// CanaryShown is a trial as the admin API shows it.
type CanaryShown struct {
	Route       string      `json:"route"`
	Model       string      `json:"model"`
	State       CanaryPhase `json:"state"`
	Share       float64     `json:"share"` // of the requests, that goes to the model now
	Step        int         `json:"step"`  // from 1 on
	Steps       []float64   `json:"steps"`
	Reason      *string     `json:"reason"` // what the last judgement found
	Since       time.Time   `json:"since"`
	MinRequests int         `json:"min_requests"`
	Serial      uint64      `json:"serial"`
	Trial       CanarySide  `json:"trial"` // since the step began
	Others      CanarySide  `json:"others"`
}

// CanarySide is how the requests of one side have ended since the step began. Unknown is
// nil.
type CanarySide struct {
	Requests int      `json:"requests"`
	Failed   int      `json:"failed"`
	Refused  int      `json:"refused"`
	TTFT     *float64 `json:"ttft_seconds"`
	Pace     *float64 `json:"tokens_per_second"`
	Tokens   *float64 `json:"tokens"`
}

// CanariesShown is GET /api/canaries.
type CanariesShown struct {
	Schema   int           `json:"schema"`
	At       time.Time     `json:"at"`
	Canaries []CanaryShown `json:"canaries"`
}
