// Package bench measures a service that speaks OpenAI's API, with the load, the
// definitions and the result file of vLLM's `bench serve`, and says beside each
// result if it can be believed.
//
// # Definitions
//
// A request is due at its time in the schedule, sent when a connection writes it,
// and has an event for each data line whose choices are not empty. TTFT is first
// event − sent, E2EL is last event − sent, ITL is each gap between two events, TPOT
// is (E2EL − TTFT) / (tokens − 1) of a request with two tokens or more. Percentiles
// interpolate; a request that failed is in no latency. Duration goes from the
// first dispatch to the last answer. These are vLLM's, so that figures compare.
//
// Beside them stand the latencies from the due time. If a cap on concurrency, or a
// slow client, holds a request back, TTFT and E2EL do not show it and ttft_due and
// e2el_due do.
//
// # The path of a run
//
// A data set (package data) gives Requests. Schedule gives their due times. Run
// warms the service up, dispatches, and collects a Sample of each request; Measure
// turns samples into Metrics, and Judge says what is wrong with the run itself: a
// client that was the limit, a rate that was not reached, too few samples for a
// percentile. Sweep raises the load until the service level is missed. Result
// is the file; Report is the page; Compare sets two files side by side.
package bench
