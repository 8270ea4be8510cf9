package control

import "time"

// PoolState is what a door counts of a pool since it began. The pool without a name is
// what came to none.
type PoolState struct {
	Name    string `json:"name"`
	Waiting int    `json:"waiting"`
	// Requests that have ended, by their outcomes.
	OK          int64 `json:"ok"`
	ClientError int64 `json:"client_error"`
	Refused     int64 `json:"refused"`
	Failed      int64 `json:"failed"`
	Cancelled   int64 `json:"cancelled"`
	// TurnedAway are those refused for want of room, of a worker or of memory.
	TurnedAway   int64 `json:"turned_away"`
	PromptTokens int64 `json:"prompt_tokens"`
	// TTFT counts first tokens by TTFTBounds; the last is of those above all bounds.
	TTFT []int64 `json:"ttft"`
}

// TTFTBounds are the upper bounds, in seconds, by which times to first token are counted.
var TTFTBounds = [...]float64{.01, .025, .05, .075, .1, .15, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 30, 60, 120, 300}

// Device is what a worker says of the device that it computes on. Unknown is nil.
type Device struct {
	Name        *string  `json:"name"`
	Busy        *float64 `json:"busy"` // 0 to 1
	MemoryUsed  *float64 `json:"memory_used_bytes"`
	MemoryTotal *float64 `json:"memory_total_bytes"`
	Power       *float64 `json:"power_watts"`
	Temperature *float64 `json:"temperature_celsius"`
	HostMemory  *float64 `json:"host_memory_bytes"` // of the worker's process or container
}

// Traffic is what a worker has served since its generation began. Unknown is nil.
type Traffic struct {
	Served          *int64   `json:"served"`
	Failed          *int64   `json:"failed"`
	Tokens          *int64   `json:"tokens"`
	TTFTSeconds     *float64 `json:"ttft_seconds"`      // moving average
	TokensPerSecond *float64 `json:"tokens_per_second"` // moving average of one stream
	PrefixHits      *float64 `json:"prefix_hits"`       // share of the prompt tokens looked up
	Preemptions     *int64   `json:"preemptions"`
}

// Ended is a request that has ended: its sizes and times, never its text.
type Ended struct {
	ID              string    `json:"id"`
	Pool            *string   `json:"pool"`
	Worker          *string   `json:"worker"` // the last one
	Model           *string   `json:"model"`
	Route           *string   `json:"route"`
	Key             *string   `json:"key"` // the key's name
	Priority        string    `json:"priority"`
	Path            string    `json:"path"`
	Status          int       `json:"status"`
	Outcome         string    `json:"outcome"`
	Reason          *string   `json:"reason"` // the error's code
	Began           time.Time `json:"began"`
	End             time.Time `json:"ended"`
	QueueSeconds    float64   `json:"queue_seconds"`
	TTFTSeconds     *float64  `json:"ttft_seconds"`
	Seconds         float64   `json:"seconds"`
	PromptTokens    *int64    `json:"prompt_tokens"`
	CachedTokens    *int64    `json:"cached_tokens"`
	GeneratedTokens *int64    `json:"generated_tokens"`
	Resumes         int       `json:"resumes"`
	Streamed        bool      `json:"streamed"`
	Door            string    `json:"door"`
}

// EndedRequests is GET /api/requests?ended=1, the newest first.
type EndedRequests struct {
	Schema int       `json:"schema"`
	At     time.Time `json:"at"`
	Ended  []Ended   `json:"ended"`
}

// Decisions is GET /api/decisions, the newest first.
type Decisions struct {
	Schema    int        `json:"schema"`
	At        time.Time  `json:"at"`
	Decisions []Decision `json:"decisions"`
}
