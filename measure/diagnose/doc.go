// Package diagnose finds what ails a service of LLM engines, from what its metrics
// said over some time: a [Recording] goes in, with the [Facts] of the configuration,
// and a [Report] of findings comes out. The rules are pure; whoever has an exposition
// of a door, a Prometheus or a saved file can ask them.
//
// A worker that begins, drains or turns within the recording is judged by no rule
// that compares rates: its figures are those of the change.
package diagnose
