// Package batch is OpenAI's /v1/files and /v1/batches, kept in a folder: requests as
// lines of a file, each sent through the door with low priority, answers as lines of
// another.
//
// Everything lies on disk and nothing in memory but what runs, so that a batch goes on
// where it stopped when its program ends, however it ends: a line whose answer is in
// the output is not sent again. Several programs may share a folder, as two doors do
// while one replaces the other: changes are made under a lock, and one program at a
// time runs lines.
//
// Who asked for a file or a batch is its owner, and nobody else sees it.
package batch
