// Package worker is the engine: it turns requests into steps of a model and
// steps into streams of tokens.
//
// # Life of a request
//
// A handler (worker/server) turns text into token ids and calls
// Engine.Submit. The request is posted to the engine's goroutine, which makes
// one Sequence for each choice and hands them to the Scheduler. Every step,
// the Scheduler plans which tokens of which sequences are computed, the
// engine fills a kernels.Step from the plan, the backend runs it, and the
// tokens that were chosen are appended, checked against the request's ends,
// and put into the request's Stream. The handler reads events from the Stream
// and turns them into text.
//
// # Who owns what
//
// The goroutine of Engine.Run owns the Scheduler, the kv.Cache and all
// sequences. Others reach them through functions that they post, which run
// between two steps. Scheduler and kv.Cache are pure: no goroutine, lock,
// clock or I/O.
//
// # What can be relied on
//
//   - A request gives the same tokens alone or in any company, in one piece or
//     in chunks, after preemption and from the prefix cache: its rows depend on
//     its own tokens, and its random numbers on seed, choice and position.
//   - Every request ends: with a reason, or with the error that ended the
//     engine.
//   - A request can end nothing but itself. What a step says wrongly, and a fault
//     in a request's grammar, fails one sequence; a panic in a kernel's thread
//     ends that step's sequences. Only a lost device, or a broken invariant, which
//     panics with "BUG:", ends the engine.
package worker
