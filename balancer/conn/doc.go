// Package conn holds the door's connections: a socket that waits for bytes
// without a buffer, the connections kept to a worker, the watch for clients that
// leave, and all memory that is lent for bytes (buffers.go). It knows no request.
package conn
