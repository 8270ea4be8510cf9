// Package vllm puts two real vLLM servers behind the door and strikes one of them
// under streams of every kind (`make test-vllm`; build tag vllm).
//
//	install         brings vLLM in, by package names
//	kinds           the requests
//	said            what a stream said, to be compared
//	record          writes what a server answers, for balancer/sim/recorded
//	system_test.go  `roundhouse up` with a pool of the process driver's command
//	faults_test.go  kinds × faults
package vllm
