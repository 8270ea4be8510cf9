// Package decision keeps the last choices of a worker, for those who ask why.
package decision
