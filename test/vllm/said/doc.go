// Package said reads what a stream of vLLM's kinds of answers said, so that two
// streams can be compared however they were cut into events.
package said
