// Package campaign throws at a running door and its workers what nobody asks for
// politely: bodies of every field and type, clients that are slow or broken, and
// rotations in which processes fail. It counts requests and faults, and what was
// lost, refused or mixed of the checkable answers that run meanwhile. A rotation waits
// more than it computes, so several systems turn side by side (-fleets), each with its own
// programs, disk and clock.
//
// `make campaign` goes on for an hour; the tests' own run is short (-for), and has
// neither clocks that jump (-clocks) nor a Docker engine that dies (the tag docker).
// Every run prints a table of what it came to.
//
//	grammar.go        bodies, drawn from fields × values
//	fields.go         the fields of each endpoint
//	clients.go        clients that are slow or broken
//	campaign_test.go  bodies and clients against a running system
//	rotations_test.go rotations under faults
//	faults_test.go    the faults
//	disk_test.go      disks that are full, read-only, or break under open files
//	clock_test.go     programs whose clock on the wall jumps
//	engine_test.go    containers whose engine is killed
//	checked_test.go   the answers that are checked meanwhile
//	memory_test.go    how much memory each process has
//	tally_test.go     the table
package campaign
