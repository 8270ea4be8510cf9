// Package extproc speaks Envoy's external processing protocol as the endpoint picker of
// a gateway: it reads a request as the gateway streams it, has a host choose the
// endpoint, gives the body back, and watches the answer. It knows the protocol and each
// gateway's way of speaking it, and nothing of workers.
package extproc
