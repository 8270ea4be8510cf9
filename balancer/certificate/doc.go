// Package certificate is the pair that the door shows to those who speak TLS with
// it, read again when its files change.
package certificate
