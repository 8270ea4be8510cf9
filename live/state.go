package live

import (
	"encoding/json"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/measure/verdict"
)

// State is the snapshot that a stream begins with.
type State struct {
	Schema     int                      `json:"schema"`
	At         time.Time                `json:"at"`
	Verdict    verdict.Verdict          `json:"verdict"`
	Door       control.DoorShown        `json:"door"`
	Doors      []OneDoor                `json:"doors"`
	Supervisor *control.SupervisorShown `json:"supervisor"`
	Pools      []control.PoolShown      `json:"pools"`
	Figures    []Figures                `json:"figures"`
	Workers    []control.WorkerShown    `json:"workers"`
	Rotations  []Rotation               `json:"rotations"`
	Schedules  []Schedule               `json:"schedules"`
	Canaries   []control.CanaryShown    `json:"canaries,omitempty"`
}

// Change is what of a state is another than it was told; what is nil is as it was.
type Change struct {
	At         time.Time                    `json:"at"`
	Verdict    *verdict.Verdict             `json:"verdict,omitempty"`
	Door       *control.DoorShown           `json:"door,omitempty"`
	Doors      []OneDoor                    `json:"doors,omitempty"`
	Supervisor *control.SupervisorShown     `json:"supervisor,omitempty"`
	Pools      *[]control.PoolShown         `json:"pools,omitempty"`
	Figures    *[]Figures                   `json:"figures,omitempty"`
	Workers    []map[string]json.RawMessage `json:"workers,omitempty"`
	Gone       []string                     `json:"gone,omitempty"`
	Rotations  *[]Rotation                  `json:"rotations,omitempty"`
	Schedules  *[]Schedule                  `json:"schedules,omitempty"`
	Canaries   *[]control.CanaryShown       `json:"canaries,omitempty"`
}

// Figures are a pool's, or of all pools together.
type Figures struct {
	Pool           *string  `json:"pool"` // null: all
	Requests       *float64 `json:"requests_per_second"`
	Failed         *float64 `json:"failed_per_second"`
	Refused        *float64 `json:"refused_per_second"`
	Tokens         *float64 `json:"tokens_per_second"`
	PromptTokens   *float64 `json:"prompt_tokens_per_second"`
	FailedShare    *float64 `json:"failed_share"`
	TTFT50         *float64 `json:"ttft_p50_seconds"`
	TTFT95         *float64 `json:"ttft_p95_seconds"`
	Waiting        int      `json:"waiting"`
	InFlight       int      `json:"in_flight"`
	KVUsage        *float64 `json:"kv_usage"`
	refusedLong    *float64 // a second, of five minutes
	waitingBefore  *int     // five minutes ago
	pool           string
	ready          int
	charged, holds int64
}

// Hello is the first message of a stream.
type Hello struct {
	Schema     int            `json:"schema"`
	Version    string         `json:"version"`
	At         time.Time      `json:"at"`
	Rights     control.Rights `json:"rights"`
	Supervisor bool           `json:"supervisor"`
	Assets     string         `json:"assets"`
}

// LiveRequests is what is in flight, as far as a stream has asked for it.
type LiveRequests struct {
	At       time.Time          `json:"at"`
	Total    int                `json:"total"`
	Waiting  int                `json:"waiting"`
	Requests []control.InFlight `json:"requests"`
}

// Sample is the newest point of the history.
type Sample struct {
	At     time.Time     `json:"at"`
	Step   int           `json:"step_seconds"`
	Series []SampleValue `json:"series"`
}

// SampleValue is the newest value of one series.
type SampleValue struct {
	Name   string   `json:"name"`
	Pool   *string  `json:"pool"`
	Worker *string  `json:"worker"`
	Value  *float64 `json:"value"`
}

// LogLines is some lines of a log.
type LogLines struct {
	Of    string   `json:"of"`
	Lines []string `json:"lines"`
	Error string   `json:"error,omitempty"`
}

// Gap says that something is missing here.
type Gap struct {
	What   string  `json:"what"`
	Missed *uint64 `json:"missed"` // null: unknown
	From   uint64  `json:"from,omitempty"`
	To     uint64  `json:"to,omitempty"`
}

// Bye is the last message of a stream.
type Bye struct {
	Reason string `json:"reason"` // slow | ending | full | expired
}
