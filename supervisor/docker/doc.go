// Package docker runs workers as containers through the Docker Engine API.
//
// A container is ours by its labels: the instance (one a state folder), the
// worker, the generation, and a hash of all that it was made of. Nothing
// without our instance's label is ever changed, with one exception that the
// configuration names: a takeover, which is served as it is until its worker's
// first turn, then stopped, and kept under another name.
//
// Events only say when to look again; after every break of their stream
// everything is listed anew. Every call has a deadline. No container gets more
// than its devices: one render node a GPU, never privileged.
package docker
