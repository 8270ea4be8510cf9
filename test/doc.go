// Package test drives the whole program from outside: the binaries as they are
// built, over HTTP, with clients that nobody here wrote. The packages have
// their own tests beside them; what stands here is what a user would notice.
//
//	harness_test.go   starts `roundhouse up`, stops it
//	start_test.go     the quick start, and starts that cannot work
//	rotation_test.go  streams of checkable answers while every worker takes its turn
//	client_test.go    openai-python and openai-node (tag clients)
//	adapter_test.go   an adapter as a model, while its workers are replaced
//	rules_test.go     the repository's own rules, each with its reason
//	adapter, counting what tests ask for: an adapter, and streams that can be checked
//	program           the programs, built once for a package that runs them
//	ports             ports that nobody else is given, for what a test must name beforehand
package test
