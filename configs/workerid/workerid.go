// Package workerid joins and splits the id of a worker: pool/name. It is a leaf,
// so that the door, the supervisor and the commands may all import it.
package workerid

import "strings"

// Of is the id of a pool's worker. Neither name holds a slash: the configuration
// refuses it.
func Of(pool, name string) string { return pool + "/" + name }

// Split cuts an id into the pool and the worker's name in it.
func Split(id string) (pool, name string) {
	pool, name, _ = strings.Cut(id, "/")
	return pool, name
}

// Pool is the pool of an id.
func Pool(id string) string {
	pool, _ := Split(id)
	return pool
}
