// Package differential asks two servers the same and compares what they answer:
// a real vLLM and our worker, or the worker and what vLLM answered when it was
// last recorded.
//
//	request.go   the requests, one a line of testdata/requests.jsonl and odd.jsonl
//	answer.go    what is compared of an answer
//	stream.go    the same of an answer in events
//	compare.go   how two of them differ
//	expected.go  which differences are wanted: the table of docs/api.md
//	compare/     the program: `go run ./test/differential/compare -vllm URL -worker URL`
package differential
