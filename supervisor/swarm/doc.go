// Package swarm runs workers as services of a Docker Swarm.
//
// A worker is a service of one task, which Swarm itself never restarts: who
// restarts is one, and that is the supervisor. A generation is a service; it is
// ours by its labels, which are those of package moby. A service whose worker
// was stopped stays, scaled to nothing, until its successor takes its name.
//
// A worker's address is its task's: on an overlay network where the door stands in
// a container of one, else the port that is published on its node. A task that
// Swarm puts in another's place (docker service update) is no generation of ours:
// the worker counts as ended, and its next start removes what Swarm began, so that
// two never live at once. A task that Swarm is about to stop, because its node is
// drained or lost, is told as leaving, so that the doors move its streams.
//
// The engine that is asked must be a manager. One that does not answer, and a Swarm
// without a quorum, are driver.ErrAway. Every call has a deadline, but for that of a
// log, which is followed for as long as it is wanted.
package swarm
