// Package sim holds workers that compute nothing: an HTTP server that behaves
// like an engine with a KV cache, a prefill rate and a decode rate, and can be
// made to die, hang or refuse; and a simulated fleet with traffic, on which
// routing policies are compared.
package sim
