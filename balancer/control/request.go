package control

import "time"

// InFlight is one request that a door has accepted and not ended.
type InFlight struct {
	ID       string    `json:"id"` // x-request-id
	Pool     string    `json:"pool"`
	Worker   string    `json:"worker"` // empty while queued
	Model    string    `json:"model"`
	Route    string    `json:"route,omitempty"`
	Key      string    `json:"key,omitempty"` // the key's name, never the key
	Priority string    `json:"priority"`
	State    string    `json:"state"`              // "queued", "sent", "streaming", "parked"
	Position int       `json:"position,omitempty"` // in the queue, from 1
	WaitsFor string    `json:"waits_for,omitempty"`
	Since    time.Time `json:"since"`
	Prompt   int64     `json:"prompt_tokens"` // estimated until the worker has said
	Output   int64     `json:"generated_tokens"`
	Resumes  int       `json:"resumes"`
	Door     string    `json:"door,omitempty"` // its id
	// TokensPerSecond is of the last seconds, in the stream of the admin API alone.
	TokensPerSecond *float64 `json:"tokens_per_second,omitempty"`
}

// Decision explains one choice.
type Decision struct {
	Request    string      `json:"request"`
	At         time.Time   `json:"at"`
	Pool       string      `json:"pool"`
	Policy     string      `json:"policy"`
	Reason     string      `json:"reason"` // least, tie, prefix, sticky, only, no_report
	Chosen     string      `json:"chosen"`
	RunnerUp   string      `json:"runner_up,omitempty"`
	Need       int64       `json:"need_tokens"` // prompt + expected output
	Candidates []Candidate `json:"candidates"`
}

// Candidate is one worker as the choice saw it.
type Candidate struct {
	Worker           string   `json:"worker"`
	Score            float64  `json:"score"`
	CapacityTokens   *int64   `json:"capacity_tokens"`
	ChargedTokens    int64    `json:"charged_tokens"`
	ForeignTokens    int64    `json:"foreign_tokens"`
	PrefillTokens    int64    `json:"prefill_tokens"`
	PrefixTokens     int64    `json:"prefix_tokens"` // of this prompt, believed cached there
	PredictedTTFT    *float64 `json:"predicted_ttft_seconds"`
	ReportAgeSeconds *float64 `json:"report_age_seconds"`
	Excluded         string   `json:"excluded,omitempty"` // why it was not eligible
}
