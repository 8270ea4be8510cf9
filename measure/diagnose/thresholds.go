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

// Defaults are the thresholds of the rules as docs/diagnose.md tells them: their figures
// are rows of the one table that verdict and alerts have too.
var Defaults = Thresholds{
	Finished: bound("finished"),
	KVFull:   bound("kv_full"), Pressure: bound("preemptions"), Thrashing: bound("preemptions_critical"), Foreign: bound("foreign"),
	PromptTime: bound("prompt_time"), SeatsFull: bound("seats_full"),
	SlowGap: bound("slow_gap"), SlowMean: bound("slow_mean"), BudgetFull: bound("budget_full"),
	Idle:    IdleThresholds{Device: bound("device_idle"), Running: bound("few_running"), Seats: bound("seats_idle"), For: over("little_traffic")},
	IdleKV:  over("kv_idle"),
	Memory:  MemoryThresholds{Over: over("memory_seen"), Out: over("memory_out"), Growth: bound("memory_growth"), Within: over("memory_growth")},
	FewHits: bound("prefix_hits"), HitsOver: over("prefix_hits"), HitsRate: bound("prompt_rate"),
	LongPrompt: bound("long_prompt"), LongTTFT: bound("long_ttft"), LongFloor: bound("long_floor"),
	Slow: 1 - bound(verdict.SlowWorker), Peers: int(bound("peers")), Prediction: bound("prediction"),
	QueueOver: over("queue_growth"), QueueGrowth: bound("queue_growth"),
	ReportAge: bound(verdict.ReportAge), ForeignBlind: bound("foreign_blind"), Starts: int(bound("starts")), HangUps: bound("hang_ups"),
	ErrorsP: bound("errors_chance"), Errors: bound("errors"),
}

func bound(code string) float64      { return verdict.Of(code).Value }
func over(code string) time.Duration { return verdict.Of(code).For }
