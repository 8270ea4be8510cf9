//go:build race

package tokenizer

// raceDetector says that the tests run ten times slower, to find races.
const raceDetector = true
