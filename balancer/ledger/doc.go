// Package ledger is the door's account of KV: what every worker holds of the
// requests that this door sent, what it must still compute for them, and the
// choice of a worker by these accounts.
//
// Two accounts a worker. kv is the tokens that its requests will hold: for
// each the greater of prompt plus expected output and prompt plus generated so
// far. prefill is the prompt tokens still to compute; it is released at a
// request's first token. Choice and charge are one step under one lock (pick
// is reserve), and every charge is released exactly once.
//
// Reports correct only what this door does not see: load from elsewhere
// (foreign), capacity, progress. A report that is missing, late or absurd
// changes no choice: the accounts alone carry on.
//
// The package does no I/O, starts no goroutine and reads no clock: the time is
// an argument, in nanoseconds of any monotonic clock. The same code chooses in
// the door and in the simulator.
package ledger
