// Package kinds lists the kinds of requests that vLLM's servers answer, each with
// a body that the demonstration model can serve.
package kinds
