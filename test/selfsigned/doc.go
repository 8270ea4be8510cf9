// Package selfsigned makes the certificate of a server that tests and benches
// start on the loopback.
package selfsigned
