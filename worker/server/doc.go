// Package server is the worker's HTTP face: the routes, fields, errors,
// streams and metrics that clients, gateways and dashboards of vLLM expect.
//
// # Path of a request
//
// A handler decodes the body (json.go: bounded depth, no duplicate keys,
// exact names), turns its sampling fields into worker.Params (sampling.go),
// renders and tokenises the prompt, and makes a job. The job (job.go) submits
// to the engine, feeds each choice's tokens through an assembler (text.go:
// detokenising and stop strings) and, for chats, through parsers of reasoning
// and tool calls, and hands the handler one update for each token: to be
// written as an event at once, or gathered into one answer.
//
// # Resuming
//
// A request with roundhouse_resume goes the same way. The tokens that were
// sent before pass assembler and parsers first and what these would have said
// is dropped, so the stream goes on where it was cut.
//
// A request's context ends when the client hangs up, and with it the
// generation. A panic in a handler ends its request alone.
package server
