// Package campaign throws at a running door and its workers what nobody asks for
// politely: bodies of every field and type, clients that are slow or broken, and
// rotations in which processes fail. It counts requests and faults, and what was
// lost, refused or mixed of the checkable answers that run meanwhile.
//
// `make campaign` goes on for an hour; the tests' own run is short (-for).
//
//	grammar.go        bodies, drawn from fields × values
//	fields.go         the fields of each endpoint
//	clients.go        clients that are slow or broken
//	campaign_test.go  bodies and clients against a running system
//	rotations_test.go rotations and faults
//	checked_test.go   the answers that are checked meanwhile, and memory
package campaign
