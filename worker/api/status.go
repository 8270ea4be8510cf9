package api

// The headers that pass between door and worker. A worker that is not ours
// ignores them.
const (
	HeaderDoor      = "X-Roundhouse-Door"   // the door's id, [A-Za-z0-9_-]{1,64}
	HeaderSeq       = "X-Roundhouse-Seq"    // decimal; rises by one a request that this door sends to this worker
	HeaderChunks    = "X-Roundhouse-Chunks" // the door's prompt-chunk digests: 16 hex digits each, joined by commas; the last says how many times the chunk's length was doubled
	HeaderWaited    = "X-Roundhouse-Waited" // decimal: milliseconds that the request has waited at the door, or at a worker that failed it
	HeaderOwner     = "X-Roundhouse-Owner"  // a digest of the client that the door knows by its key: who may see again what was stored
	HeaderRequestID = "X-Request-Id"
)

// StatusPath is where a worker of ours streams its Status.
const StatusPath = "/roundhouse/status"

// StatusProtocol is the version of Status. A door refuses a newer one and
// says so; it never guesses.
const StatusProtocol = 1

// Status is what a worker says of itself: one JSON object a line (NDJSON) on
// GET /roundhouse/status, at once, on every change (at most every 20 ms) and
// every second. It knows no door but by the ids that requests carried.
type Status struct {
	Protocol   int    `json:"protocol"`
	Generation string `json:"generation"` // drawn at random when the process starts
	At         int64  `json:"at_ms"`      // the worker's own clock, Unix milliseconds: for people, never compared

	CapacityTokens int64 `json:"capacity_tokens"` // what the KV cache holds
	UsedTokens     int64 `json:"used_tokens"`     // in blocks that live requests hold; idle cached blocks are free
	CachedTokens   int64 `json:"cached_tokens"`   // in idle blocks that a prompt could still hit
	MaxModelLen    int   `json:"max_model_len"`   // the longest context it serves

	Running       int   `json:"running"`
	Waiting       int   `json:"waiting"`
	PrefillTokens int64 `json:"prefill_tokens"` // prompt tokens still to compute, running and waiting

	// Progress counters since the start; a worker whose Running is above zero
	// while both stand still is hung.
	PromptTokens    int64 `json:"prompt_tokens_total"`
	GeneratedTokens int64 `json:"generated_tokens_total"`

	Models     []string              `json:"models"`
	Modalities []string              `json:"modalities,omitempty"` // what a prompt may hold: "text", "image", "audio"
	Draining   bool                  `json:"draining"`
	Doors      map[string]DoorStatus `json:"doors,omitempty"`
}

// DoorStatus is what a worker holds of one door.
type DoorStatus struct {
	// Through and Beyond name the sequence numbers that the worker has seen:
	// all up to Through, and those of Beyond. A request whose number is not
	// among them had not arrived when the report was made.
	Through uint64   `json:"through"`
	Beyond  []uint64 `json:"beyond,omitempty"`

	// ResidentTokens lie in blocks that this door's live requests hold, each
	// block counted once; they are part of UsedTokens.
	ResidentTokens int64 `json:"resident_tokens"`

	// Evicted lists prompt-chunk digests of this door whose blocks have left
	// the cache since the last line of this stream.
	Evicted []string `json:"evicted,omitempty"`
}
