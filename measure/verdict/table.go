package verdict

import "time"

// Level is how bad something is.
type Level string

// The levels, the worst first.
const (
	Down     Level = "down"
	Hurting  Level = "hurting"
	AtRisk   Level = "at_risk"
	Changing Level = "changing"
	Well     Level = "well"
)

var levels = [...]Level{Down, Hurting, AtRisk, Changing, Well}

// rank orders levels: the worst is 0.
func (l Level) rank() int {
	for i, x := range levels {
		if x == l {
			return i
		}
	}
	return len(levels)
}

// The codes of the findings that have a threshold.
const (
	FailedShare = "failed_share"
	Refusals    = "refusals"
	TTFT        = "ttft"
	KVPromised  = "kv_promised"
	QueueGrows  = "queue_grows"
	ReportAge   = "report_age"
	SlowWorker  = "slow_worker"
)

// Threshold is the bound of one figure from which on it is a finding.
type Threshold struct {
	Code  string
	Level Level
	Value float64 // more than this
	Unit  string
	For   time.Duration // over this time, or for so long
	Text  string
	Alert string // the shipped alert that has the same bound; empty: none
}

// Table is all thresholds. The shipped alerts are held to it by a test.
var Table = []Threshold{
	{FailedShare, Hurting, 0.01, "share", 5 * time.Minute, "requests that failed, of all that ended", "RoundhouseFailing"},
	{Refusals, Hurting, 0.1, "1/s", 5 * time.Minute, "requests turned away: the queue full or too slow, no worker, no memory", "RoundhouseRefusing"},
	{TTFT, Hurting, 5, "s", 5 * time.Minute, "time to the first token of one request in twenty", "RoundhouseHighTTFT"},
	{KVPromised, AtRisk, 0.9, "share", 5 * time.Minute, "of the KV caches of a pool promised to requests", "RoundhouseKVNearlyFull"},
	{QueueGrows, AtRisk, 20, "requests", 5 * time.Minute, "requests wait at the door, and more than before", "RoundhouseQueueBuildUp"},
	{ReportAge, AtRisk, 30, "s", 0, "since a worker has reported", "RoundhouseReportsOld"},
	{SlowWorker, AtRisk, 0.3, "share", 5 * time.Minute, "a worker's streams are slower than the median of its pool", ""},
}

// Of returns the threshold of a code.
func Of(code string) Threshold {
	for _, t := range Table {
		if t.Code == code {
			return t
		}
	}
	panic("BUG: there is no threshold " + code)
}
