// Package tune looks for settings of an engine that serve its traffic better than the
// present ones.
//
//	space.go   arithmetic: which settings can be at all
//	halve.go   the worse half of them is thrown out in simulation, again and again
//	turns.go   the best few and the present ones are measured in turns, and judged
package tune
