// Package extend is what plugins add to the door: filters that see requests, and
// policies that order workers. It keeps the door's own code free of protocol
// buffers, and costs nothing where no plugin is configured: a nil *Set does
// nothing.
//
// A Set belongs to the door and is changed by Apply when a worker set comes. A Pass
// is one request's way through the filters: Begin, then Respond, Chunk for each write
// and End once, whatever became of it.
package extend
