// Package otlp sends traces to an OpenTelemetry collector: OTLP over HTTP in
// its JSON form, to the endpoint's /v1/traces.
//
// A span is handed over when it has ended, and that never waits: spans stand in
// a bounded queue, leave in batches, and are dropped and counted where the
// collector is slow or away. Spans hold names, figures and identifiers, and
// nothing that a client wrote but the model's name.
//
// The trace's context is W3C's traceparent: taken from the request, where it is
// well formed, and handed on to the worker with the span that asks it.
package otlp
