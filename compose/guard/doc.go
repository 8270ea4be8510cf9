// Package guard stands between the supervisor and a Docker engine's socket
// and lets pass what running workers takes, nothing else.
//
// Whoever may POST to /containers/create owns the host: one body with
// Privileged, a bind of / or the host's PID namespace is enough. So nothing is
// passed on. A request is read into the engine's own types, and another is made
// of it: field by field, parameter by parameter, without a header of the first.
// What has no place in the new one is refused, and so is what the types do not
// know. Two spellings of a name are two only where encoding/json has them two.
//
// A container is held to what the configuration gives the worker that it says it
// is: image, volumes, networks, port, GPUs, limits. An image's name is compared
// as engines understand it; what a name stood for may be run by its identity
// after the name has moved on, or a roll-back could not go back.
//
// All else is a list of methods and paths. Containers are touched only where
// their label says that they are this instance's, or where the configuration
// names them for takeover, and by their identity: a name may be a stranger's a
// moment later. Nothing can be attached to, executed in, copied into or out of.
//
// The door never has this socket, not even guarded.
package guard
