// Package workertest has a model of no weights for tests of the engine and
// the server. Its "keys and values" are hashes of all tokens so far, kept in
// real pages by block table, and its logits are drawn from what it reads back
// there: a wrong block, a stale page, a position off by one or a token that
// was not yet written changes the output or is reported.
package workertest
