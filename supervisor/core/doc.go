// Package core decides the supervisor's next actions. Next is a function of
// the desired state, the observed state and the time; it has no goroutine, lock,
// clock or I/O, so that a simulated month runs in milliseconds.
//
// Desired is the configuration and the Intent. The Intent is the memory
// between two decisions: where each worker stands in its life, and each pool's
// last rotation. A decision carries a new Intent; whoever acts writes it down
// first and acts then, so that a successor goes on from the same place.
//
// These hold always, whatever fails:
//
//   - No act of ours takes a pool below its min_ready ready workers.
//   - Never are two workers of a pool out at once by rotation.
//   - A worker is stopped only when it is drained, every living door has
//     acknowledged the drain and its lease is good; or when it is dead,
//     hung, never became ready, or its drain's deadline has passed.
//   - Every rotation ends in done, rolled back, or halted with a reason.
//   - A healthy worker is never restarted because the supervisor was.
package core
