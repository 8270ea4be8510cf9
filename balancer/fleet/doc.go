// Package fleet is the workers as one door keeps them: pools, the workers in them,
// and their reports (a status stream of ours, else scraped metrics). Of the door it
// knows three hooks (Fleet).
package fleet
