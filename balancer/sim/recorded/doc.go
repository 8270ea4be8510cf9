// Package recorded holds what real vLLM servers sent: requests of every kind and
// their answers, whole and streamed, byte by byte, of the demonstration model.
// `go run ./test/vllm/record` writes them. The older release, of which the processor's
// build fails at structured outputs and knows no Anthropic messages, has fewer kinds.
package recorded
