// Package guard stands between the supervisor and a Docker engine's socket
// and lets pass what running workers takes, nothing else.
//
// Whoever may POST to /containers/create owns the host: one body with
// Privileged, a bind of / or the host's PID namespace is enough. So a body is
// not passed on. It is read, held to the configuration (its images, its
// volumes, its network mode) and written anew: a field that this package does
// not know must be empty, and a name that differs only in case is refused,
// because the engine would take it for the field.
//
// All else is a list of methods and paths. Containers are touched only where
// their label says that they are this instance's, or where the configuration
// names them for takeover. Nothing can be attached to, executed in, copied
// into or out of.
//
// The door never has this socket, not even guarded.
package guard
