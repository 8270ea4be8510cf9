// Package kubernetes holds the endpoint picker against a real Envoy, configured as each
// kind of gateway configures it.
package kubernetes
