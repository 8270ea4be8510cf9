// Package launch starts a worker: it reads vLLM's flags, opens the model,
// plans the memory of its KV cache, builds it into a backend, runs the engine
// and serves HTTP until it is told to stop.
//
// The order is that of what can go wrong. The port is reserved first, so that
// a busy one is known at once, but nothing listens on it until the model can
// answer: whoever can connect can be served. Every fault is one sentence that
// names the flag, file or field.
package launch
