// Package control holds what passes over the private socket between the
// supervisor and a door, and between doors: the versioned worker set that the supervisor PUTs,
// the lease that goes with it, and the state that a door reports. It is a
// leaf, so that the supervisor need not import the door.
//
//	PUT    /worker-set            WorkerSet → Ack
//	GET    /state                 State
//	GET    /metrics               the door's own exposition
//	GET    /requests              Requests
//	DELETE /requests/{id}         204, or 404
//	GET    /queue                 Queue
//	GET    /requests?ended=1      EndedRequests
//	GET    /decisions             Decisions
//	GET    /decisions/{id}        Decision, or 404
//	POST   /try/…                 a request for the door itself, without a key
//	GET    /plugins               the state of the door's plugins
//	PUT    /totals                Totals of another door → TotalsAck
//	GET    /handover              Handover, for the door that takes over
//	POST   /connections           upgrades: MovedConn lists with descriptors → MovedAck, a line each
//	POST   /shutdown              drain this door and end it
//
// Rules: a door refuses a set whose Epoch is lower than the highest it has
// seen, and a higher one while the lease that it granted to the present one
// runs (409 both); it persists what it accepts, and goes on with its last set when
// nobody calls. A set is applied whole or not at all.
package control
