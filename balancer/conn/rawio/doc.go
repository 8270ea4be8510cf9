// Package rawio reads and writes sockets that never block.
//
// The syscall package tells Go's scheduler of every call, because a call may
// block: the scheduler's monitor is woken by it, looks every 20 µs whether it
// still lasts, and hands the processor to another thread if so. A socket in
// non-blocking mode returns at once, so the monitor's work is for nothing; the
// door spent a tenth of its processor on it under load and a quarter at 200
// requests a second, and a request waited 40 µs longer.
//
// The contract: the descriptor is a socket in non-blocking mode that the
// caller keeps open during the call, as inside syscall.RawConn's Read and
// Write; the bytes lie in the heap. Nothing here waits: EAGAIN is an answer.
package rawio
