// Package resume is one streamed answer, fed by as many workers as it takes:
// bytes of a worker in, bytes for the client out. It knows no socket, clock,
// lock or account.
//
// A Stream is opened with its client's request. Each worker that feeds it begins
// with Feed, and its bytes go through Take, cut into reads anyhow. When a
// worker has broken off, Broke finds the way on:
//
//   - ByField: the same request with roundhouse_resume, at a worker of ours.
//   - ByIDs: a completion of the token ids so far, at any worker. Several choices
//     go on as several prompts of one completion.
//   - Again: the same request from its beginning, of which the client gets the
//     part that it has not; it must say the same up to there.
//
// The events of all workers become events of one answer: one id, one date, each
// character, log probability and end once.
package resume
