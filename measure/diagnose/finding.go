package diagnose

import (
	"cmp"
	"slices"
	"time"
)

// Severity is how much a finding matters.
type Severity string

// The severities, the least first.
const (
	Info     Severity = "info"
	Warn     Severity = "warn"
	Critical Severity = "critical"
)

// rank orders severities.
func (s Severity) rank() int { return slices.Index([]Severity{Info, Warn, Critical}, s) }

// AtLeast reports whether s matters as much as other, or more.
func (s Severity) AtLeast(other Severity) bool { return s.rank() >= other.rank() }

// Confidence is how sure a finding is: high if its figures prove it, medium if
// something was assumed that the metrics do not tell.
type Confidence string

// The confidences.
const (
	Medium Confidence = "medium"
	High   Confidence = "high"
)

// Finding is one thing that ails a service.
type Finding struct {
	Rule       string     `json:"rule"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	Object     string     `json:"object"` // a pool, or pool/worker
	Since      time.Time  `json:"since"`  // the first moment of the recording at which it held
	Says       string     `json:"says"`   // one sentence with figures
	Cause      string     `json:"cause"`
	Evidence   []Evidence `json:"evidence"`
	Change     *Change    `json:"change"`  // null: no setting mends it
	Command    string     `json:"command"` // what to run
	Helped     string     `json:"helped"`  // how to see that it helped
	CausedBy   string     `json:"caused_by,omitempty"`
}

// Evidence is one figure that a finding rests on, over the recording's time.
type Evidence struct {
	Name   string    `json:"name"`
	Text   string    `json:"text"` // the figure that counts
	Values []float64 `json:"values,omitempty"`
}

// Change is a setting as it is and as it should be.
type Change struct {
	Now      string `json:"now"`      // HCL
	Proposed string `json:"proposed"` // HCL
	VLLM     string `json:"vllm"`     // the flag of `vllm serve`, where there is one
}

// Unjudged is a rule that could not look, and why.
type Unjudged struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Report is what all rules say of a recording.
type Report struct {
	Schema   int        `json:"schema"`
	From     time.Time  `json:"from"`
	To       time.Time  `json:"to"`
	Samples  int        `json:"samples"`
	Workers  []string   `json:"workers"`
	Findings []Finding  `json:"findings"` // the worst first
	Unjudged []Unjudged `json:"unjudged"`
}

// Worst is the severity of the worst finding, "" of none.
func (r *Report) Worst() Severity {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Severity
}

// order puts the worst first, and behind a finding those that it causes.
func (r *Report) order() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity.rank(), a.Severity.rank()), cmp.Compare(a.CausedBy, b.CausedBy), cmp.Compare(a.Object, b.Object))
	})
}

// causes are rules whose finding explains another one of the same object or pool.
var causes = map[string][]string{
	"prefill-starvation": {"kv-thrashing", "over-capacity"},
	"decode-starvation":  {"prefix-misses"}, // prompts computed anew fill the steps
	"clients-leave":      {"over-capacity", "prefill-starvation", "kv-thrashing", "long-requests", "worker-errors"},
	"wrong-prediction":   {"slow-worker", "kv-thrashing", "blind"},
	"over-capacity":      {"kv-thrashing", "slow-worker", "flapping"},
	"kv-thrashing":       {"kv-leak"},
}

// explain notes which finding is another one's cause.
func (r *Report) explain() {
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, rule := range causes[f.Rule] {
			for k := range r.Findings {
				if g := &r.Findings[k]; g.Rule == rule && f.CausedBy == "" && poolOf(g.Object) == poolOf(f.Object) && g.CausedBy != f.Rule {
					f.CausedBy = rule + " of " + g.Object
				}
			}
		}
	}
}
