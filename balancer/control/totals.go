package control

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
)

// TotalsPath is where an admin API takes them.
const TotalsPath = "/api/totals"

// PeerToken is the token of doors that tell each other their totals by way of admin APIs.
// It is made of admin.token, which all of them have, and gives no other right: a door,
// which reads what strangers send, holds no operator's token.
func PeerToken(admin string) string {
	if admin == "" {
		return ""
	}
	made := hmac.New(sha256.New, []byte(admin))
	made.Write([]byte("totals of doors"))
	return hex.EncodeToString(made.Sum(nil))
}

// Totals is what a door tells the others every 100 ms: what it has at each
// worker, and what its keys have used. The figures replace those it told
// before.
type Totals struct {
	Door     string        `json:"door"`
	Fleet    string        `json:"fleet,omitempty"`   // whose workers it serves: totals of another fleet's are not counted. Empty: unknown
	Serial   uint64        `json:"serial"`            // rises; an older one that comes late is dropped
	Gone     bool          `json:"gone,omitempty"`    // this door ends; its totals are 0
	Leaving  bool          `json:"leaving,omitempty"` // it drains: new connections are not its own any more
	Workers  []WorkerTotal `json:"workers"`
	Keys     []KeyUse      `json:"keys,omitempty"`
	Usage    *FolderUse    `json:"usage,omitempty"`    // of budgets; not with every telling
	Others   []FolderUse   `json:"others,omitempty"`   // what doors of other folders have told, for a door that is new
	Cached   []Cached      `json:"cached,omitempty"`   // what workers got into their caches since the totals before
	Canaries []CanaryState `json:"canaries,omitempty"` // with the conversations that began since the totals before
}

// WorkerTotal is what a door has at one worker. Generation and Identity tell
// the worker's process: totals of another one are not counted.
type WorkerTotal struct {
	ID             string `json:"id"` // pool/name
	Generation     uint64 `json:"generation"`
	Identity       string `json:"identity,omitempty"` // what the process calls itself; empty: unknown
	ChargedTokens  int64  `json:"charged_tokens"`
	PrefillTokens  int64  `json:"prefill_tokens"`
	ResidentTokens int64  `json:"resident_tokens"`
	InFlight       int    `json:"in_flight"`
}

// Cached is prompt chunks that a worker has in its cache now.
type Cached struct {
	Worker string `json:"worker"` // pool/name
	Chunks []byte `json:"chunks"` // 8 bytes each, little-endian
}

// KeyUse is what a key has used at a door since that door began.
type KeyUse struct {
	Name     string `json:"name"`
	Requests uint64 `json:"requests"`
	Tokens   int64  `json:"tokens"`
	Live     int    `json:"live"`
}

// TotalsAck answers totals with the name of the door that took them, and of its fleet.
type TotalsAck struct {
	Door  string `json:"door"`
	Fleet string `json:"fleet,omitempty"`
}

// Handover is what a new door takes over from one that it is to replace, before
// it accepts the first connection.
type Handover struct {
	Schema    int            `json:"schema"` // 1
	Totals    Totals         `json:"totals"`
	Workers   []WorkerFacts  `json:"workers"`
	Remaining []KeyRemaining `json:"remaining"` // of the keys' buckets
	Routes    []RouteDebts   `json:"routes"`
	Models    []ModelFacts   `json:"models"`
	Pools     []PoolFacts    `json:"pools"`
	Stored    []Stored       `json:"stored"` // which worker has which response
	Prefix    []PrefixFacts  `json:"prefix"`
	Canaries  []CanaryState  `json:"canaries,omitempty"` // with all conversations
}

// MovedConn describes one idle connection that moves to the next door; its
// descriptor comes with it. Worker is empty for a client's.
type MovedConn struct {
	Worker     string `json:"worker,omitempty"` // pool/name
	Generation uint64 `json:"generation,omitempty"`
	Address    string `json:"address,omitempty"`     // that it was made to
	IdleMillis int64  `json:"idle_millis,omitempty"` // since its last answer
	Served     bool   `json:"served,omitempty"`      // a client's request was answered on it
	// Client is who a proxy has said, in a PROXY header, that the client is.
	Client netip.AddrPort `json:"client,omitzero"`
}

// MovedAck answers a list of MovedConn: how many of them, from the first on, the
// next door has taken.
type MovedAck struct {
	Taken int `json:"taken"`
}

// WorkerFacts is what a door has learned of a worker.
type WorkerFacts struct {
	ID         string  `json:"id"`
	Generation uint64  `json:"generation"`
	Identity   string  `json:"identity,omitempty"`
	Prefill    float64 `json:"prefill_tokens_per_second"`
	Decode     float64 `json:"decode_tokens_per_second"`
	TTFT       float64 `json:"ttft_seconds"`
	Limit      int     `json:"limit"`
}

// KeyRemaining is what is left in a key's buckets.
type KeyRemaining struct {
	Name     string   `json:"name"`
	Requests *float64 `json:"requests"` // nil: never used
	Tokens   *float64 `json:"tokens"`
}

// RouteDebts is where a route stands in its turns.
type RouteDebts struct {
	Name string    `json:"name"`
	Debt []float64 `json:"debt"`
}

// ModelFacts is what a door has learned of a model's sizes.
type ModelFacts struct {
	Pool   string  `json:"pool"`
	Model  string  `json:"model"`
	Bytes  float64 `json:"bytes_per_token"` // 0: not learned
	Output float64 `json:"output_tokens"`
}

// PoolFacts is what a door has learned of the work of prompts in a pool, by their
// length, the shortest first.
type PoolFacts struct {
	Pool    string        `json:"pool"`
	Lengths []LengthFacts `json:"lengths"`
}

// LengthFacts is how long a token takes in prompts of about one length.
type LengthFacts struct {
	Tokens  float64 `json:"tokens"` // of such a prompt
	Seconds float64 `json:"seconds_per_token"`
	Seen    int     `json:"seen"`
}

// Stored is one response that a worker holds.
type Stored struct {
	ID         string `json:"id"`
	Worker     string `json:"worker"`
	Generation uint64 `json:"generation"`
	Identity   string `json:"identity,omitempty"`
	Owner      string `json:"owner,omitempty"` // a digest of whose request stored it
}

// PrefixFacts is what a pool's prefix table knows, the oldest chunk first.
type PrefixFacts struct {
	Pool    string   `json:"pool"`
	Workers []string `json:"workers"` // by bit; empty: no worker
	Words   int      `json:"words"`   // of 64 bits, in each chunk's set
	Chunks  []byte   `json:"chunks"`  // digest and set of each, little-endian
}
