// Package keyring holds the keys that clients may show, and what each has used of
// its limits.
package keyring
