package diagnose

import (
	"time"

	"roundhouse/measure/verdict"
)

// Thresholds are the figures from which on a rule speaks.
type Thresholds struct {
	Finished float64 // answers in the recording, at least: fewer bear no rate

	KVFull               float64 // share of the KV cache
	Pressure, Thrashing  float64 // preemptions for each finished answer
	Foreign              float64 // share of the KV cache that others than the doors hold
	PromptTime           float64 // share of the time in which prompts are computed; starved below it
	SeatsFull            float64 // share of --max-num-seqs
	SlowGap, SlowMean    float64 // p99 of the gaps between tokens ÷ their p50, and their mean ÷ p50
	BudgetFull           float64 // share of --max-num-batched-tokens
	Idle                 IdleThresholds
	IdleKV               time.Duration
	Memory               MemoryThresholds
	FewHits              float64 // share of prompt tokens found in the cache
	HitsOver             time.Duration
	HitsRate             float64 // prompt tokens a second
	LongPrompt, LongTTFT float64 // p99 ÷ median of lengths; TTFT of the short ÷ their baseline
	LongFloor            float64 // seconds
	Slow                 float64 // speed of a stream ÷ the peers' median
	Peers                int
	Prediction           float64 // TTFT ÷ predicted, or its inverse
	QueueOver            time.Duration
	QueueGrowth          float64 // requests, and a half more than before
	ReportAge            float64 // seconds
	ForeignBlind         float64 // share of the KV cache
	Starts               int     // unplanned ones an hour
	HangUps              float64 // share of requests
	ErrorsP, Errors      float64 // chance by Fisher's exact test; failures, at least
}

// IdleThresholds tell when a worker has little to do.
type IdleThresholds struct {
	Device         float64       // share of the time that it is in use
	Running, Seats float64       // of one whose device does not tell: requests, and their share of the seats
	For            time.Duration // of recording, until little traffic is told of
}

// MemoryThresholds tell when memory that grows is a leak.
type MemoryThresholds struct {
	Over   time.Duration // of recording, at least
	Out    time.Duration // full within
	Growth float64       // share within Within
	Within time.Duration
}

// Defaults are the thresholds of the rules as docs/diagnose.md tells them. Those that
// verdict and alerts have too stand in one table.
var Defaults = Thresholds{
	Finished: 20,
	KVFull:   0.95, Pressure: 0.25, Thrashing: 1, Foreign: 0.1,
	PromptTime: 0.1, SeatsFull: 0.98, SlowGap: 5, SlowMean: 3, BudgetFull: 0.9,
	Idle:   IdleThresholds{Device: 0.5, Running: 8, Seats: 0.25, For: 6 * time.Hour},
	IdleKV: time.Minute, Memory: MemoryThresholds{Over: 2 * time.Hour, Out: 24 * time.Hour, Growth: 0.25, Within: 6 * time.Hour},
	FewHits: 0.1, HitsOver: time.Hour, HitsRate: 1000,
	LongPrompt: 10, LongTTFT: 3, LongFloor: 0.05,
	Slow: 1 - verdict.Of(verdict.SlowWorker).Value, Peers: 3, Prediction: 2, QueueOver: time.Minute, QueueGrowth: 5,
	ReportAge: verdict.Of(verdict.ReportAge).Value, ForeignBlind: 0.2, Starts: 2, HangUps: 0.05, ErrorsP: 0.001, Errors: 5,
}
