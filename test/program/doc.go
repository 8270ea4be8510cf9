// Package program builds the repository's own programs for the tests that run them.
package program
