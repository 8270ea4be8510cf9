//go:build !race

package model

// raceDetector says that the tests run ten times slower, to find races.
const raceDetector = false
