package control

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// EndedFilter chooses among requests that have ended. What is empty takes all.
type EndedFilter struct {
	Limit                    int
	Pool, Worker, Model, Key string
	Outcomes                 []string
}

// mostEnded is how many are listed at most.
const mostEnded = 2560

// ParseEnded reads a filter from a query.
func ParseEnded(q url.Values) EndedFilter {
	f := EndedFilter{Limit: limitOf(q, 200, mostEnded), Pool: q.Get("pool"), Worker: q.Get("worker"), Model: q.Get("model"), Key: q.Get("key")}
	if o := q.Get("outcome"); o != "" {
		f.Outcomes = strings.Split(o, ",")
	}
	return f
}

// limitOf reads how many are wanted: usual, where nothing is said that makes sense.
func limitOf(q url.Values, usual, most int) int {
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 {
		return usual
	}
	return min(n, most)
}

// Takes reports whether the filter takes a request.
func (f *EndedFilter) Takes(e *Ended) bool {
	is := func(want string, got *string) bool { return want == "" || got != nil && *got == want }
	return is(f.Pool, e.Pool) && is(f.Worker, e.Worker) && is(f.Model, e.Model) && is(f.Key, e.Key) &&
		(len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, e.Outcome))
}

// DecisionFilter chooses among decisions. What is empty takes all.
type DecisionFilter struct {
	Limit        int
	Pool, Worker string
}

// ParseDecisions reads a filter from a query.
func ParseDecisions(q url.Values) DecisionFilter {
	return DecisionFilter{Limit: limitOf(q, 50, 512), Pool: q.Get("pool"), Worker: q.Get("worker")}
}

// Takes reports whether the filter takes a decision.
func (f *DecisionFilter) Takes(d *Decision) bool {
	return (f.Pool == "" || d.Pool == f.Pool) && (f.Worker == "" || d.Chosen == f.Worker ||
		slices.ContainsFunc(d.Candidates, func(c Candidate) bool { return c.Worker == f.Worker }))
}
