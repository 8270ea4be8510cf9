package verdict

import "time"

// Severity is how bad something is.
type Severity string

// The severities, the worst first.
const (
	Down     Severity = "down"
	Hurting  Severity = "hurting"
	AtRisk   Severity = "at_risk"
	Changing Severity = "changing"
	Well     Severity = "well"
)

var severities = [...]Severity{Down, Hurting, AtRisk, Changing, Well}

// rank orders severities: the worst is 0.
func (l Severity) rank() int {
	for i, x := range severities {
		if x == l {
			return i
		}
	}
	return len(severities)
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

// Threshold is the bound of one figure from which on somebody is told.
type Threshold struct {
	Code     string
	Value    float64 // more than this, or where Below is set less; 0 of those that are a time alone
	Unit     string
	For      time.Duration // over this time, or for so long
	Text     string
	Severity Severity // of the verdict's finding; empty: the verdict does not look at it
	Rule     string   // of the diagnosis; empty: none
	Alert    string   // the shipped one that has the same bound; empty: none
	Below    bool
}

// Table is all thresholds: those of the verdict, of the rules of the diagnosis, and of the
// shipped alerts, which a test holds to it.
var Table = []Threshold{
	{Code: FailedShare, Value: 0.01, Unit: "share", For: 5 * time.Minute, Text: "requests that failed, of all that ended", Severity: Hurting, Alert: "RoundhouseFailing"},
	{Code: Refusals, Value: 0.1, Unit: "1/s", For: 5 * time.Minute, Text: "requests turned away: the queue full or too slow, no worker, no memory", Severity: Hurting, Alert: "RoundhouseRefusing"},
	{Code: TTFT, Value: 5, Unit: "s", For: 5 * time.Minute, Text: "time to the first token of one request in twenty", Severity: Hurting, Alert: "RoundhouseHighTTFT"},
	{Code: KVPromised, Value: 0.9, Unit: "share", For: 5 * time.Minute, Text: "of the KV caches of a pool promised to requests", Severity: AtRisk, Alert: "RoundhouseKVNearlyFull"},
	{Code: QueueGrows, Value: 20, Unit: "requests", For: 5 * time.Minute, Text: "requests wait at the door, and more than before", Severity: AtRisk, Alert: "RoundhouseQueueBuildUp"},
	{Code: ReportAge, Value: 30, Unit: "s", Text: "since a worker has reported", Severity: AtRisk, Rule: "blind", Alert: "RoundhouseReportsOld"},
	{Code: SlowWorker, Value: 0.3, Unit: "share", For: 5 * time.Minute, Text: "a worker's streams are slower than the median of its pool", Severity: AtRisk, Rule: "slow-worker"},

	{Code: "finished", Value: 20, Unit: "answers", Text: "that a rate needs", Rule: "all", Below: true},
	{Code: "kv_full", Value: 0.95, Unit: "share", Text: "of the KV cache in use", Rule: "kv-thrashing", Alert: "RoundhouseThrashing"},
	{Code: "preemptions", Value: 0.25, Unit: "1/answer", Text: "preemptions", Rule: "kv-thrashing"},
	{Code: "preemptions_critical", Value: 1, Unit: "1/answer", Text: "preemptions, critical", Rule: "kv-thrashing"},
	{Code: "preemption_rate", Value: 0.1, Unit: "1/s", For: 5 * time.Minute, Text: "preemptions of a worker", Alert: "RoundhouseThrashing"},
	{Code: "foreign", Value: 0.1, Unit: "share", Text: "of the KV cache held past the door: the cause of thrashing", Rule: "kv-thrashing"},
	{Code: "foreign_blind", Value: 0.2, Unit: "share", Text: "of the KV cache held past the door", Rule: "blind"},
	{Code: "kv_idle", For: time.Minute, Text: "KV held by a worker that nobody asks", Rule: "kv-leak"},
	{Code: "prompt_time", Value: 0.1, Unit: "share", Text: "of the time goes into prompts while requests wait", Rule: "prefill-starvation", Below: true},
	{Code: "seats_full", Value: 0.98, Unit: "share", Text: "of --max-num-seqs taken", Rule: "prefill-starvation"},
	{Code: "slow_gap", Value: 5, Unit: "times", Text: "gap between tokens, p99 beside p50", Rule: "decode-starvation"},
	{Code: "slow_mean", Value: 3, Unit: "times", Text: "gap between tokens, mean beside p50", Rule: "decode-starvation"},
	{Code: "budget_full", Value: 0.9, Unit: "share", Text: "of --max-num-batched-tokens in a step", Rule: "decode-starvation"},
	{Code: "device_idle", Value: 0.5, Unit: "share", Text: "of the time a device is in use", Rule: "under-use", Below: true},
	{Code: "few_running", Value: 8, Unit: "requests", Text: "run where the device tells nothing", Rule: "under-use", Below: true},
	{Code: "seats_idle", Value: 0.25, Unit: "share", Text: "of the seats taken where the device tells nothing", Rule: "under-use", Below: true},
	{Code: "little_traffic", For: 6 * time.Hour, Text: "idle, and nobody waits", Rule: "under-use"},
	{Code: "memory_growth", Value: 0.25, Unit: "share", For: 6 * time.Hour, Text: "more host memory", Rule: "memory-leak", Alert: "RoundhouseMemoryCreep"},
	{Code: "memory_out", For: 24 * time.Hour, Text: "until memory that grows is full", Rule: "memory-leak"},
	{Code: "memory_seen", For: 2 * time.Hour, Text: "that growing memory is looked at", Rule: "memory-leak"},
	{Code: "prefix_hits", Value: 0.1, Unit: "share", For: time.Hour, Text: "of prompt tokens found in a cache", Rule: "prefix-misses", Alert: "RoundhousePrefixMisses", Below: true},
	{Code: "prompt_rate", Value: 1000, Unit: "tokens/s", For: time.Hour, Text: "of prompts, so that their misses count", Rule: "prefix-misses", Alert: "RoundhousePrefixMisses"},
	{Code: "long_prompt", Value: 10, Unit: "times", Text: "length of prompts, p99 beside the median", Rule: "long-requests"},
	{Code: "long_ttft", Value: 3, Unit: "times", Text: "first token of short prompts beside their best", Rule: "long-requests"},
	{Code: "long_floor", Value: 0.05, Unit: "s", Text: "first token of short prompts, so that it counts", Rule: "long-requests"},
	{Code: "peers", Value: 3, Unit: "workers", Text: "to tell a slow one by", Rule: "slow-worker", Below: true},
	{Code: "prediction", Value: 2, Unit: "times", Text: "first token beside the door's prediction, or the inverse", Rule: "wrong-prediction"},
	{Code: "queue_growth", Value: 5, Unit: "requests", For: time.Minute, Text: "more wait, and a half more than before", Rule: "over-capacity"},
	{Code: "starts", Value: 2, Unit: "1/h", For: time.Hour, Text: "starts that nobody planned", Rule: "flapping", Alert: "RoundhouseWorkerFlapping"},
	{Code: "hang_ups", Value: 0.05, Unit: "share", Text: "requests ended by their client", Rule: "clients-leave"},
	{Code: "errors_chance", Value: 0.001, Unit: "chance", Text: "that a worker's failures are chance (Fisher's exact test)", Rule: "worker-errors", Below: true},
	{Code: "errors", Value: 5, Unit: "failures", Text: "of one worker", Rule: "worker-errors"},

	{Code: "stream_speed", Value: 1, Unit: "tokens/s", For: 5 * time.Minute, Text: "of each stream of a pool", Alert: "RoundhouseLowThroughput", Below: true},
	{Code: "pool_idle", Value: 0.1, Unit: "requests", For: 6 * time.Hour, Text: "in flight at each worker of a pool", Alert: "RoundhouseUnderUse", Below: true},
	{Code: "pool_large", Value: 1, Unit: "workers", Text: "of a pool that could have fewer", Alert: "RoundhouseUnderUse"},
	{Code: "ejections", Value: 2, Unit: "times", For: 15 * time.Minute, Text: "a worker is taken out by the door", Alert: "RoundhouseWorkerEjected"},
	{Code: "rotation_overdue", Value: 172800, Unit: "s", Text: "since a pool was last rotated", Alert: "RoundhouseRotationOverdue"},
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
