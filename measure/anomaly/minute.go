package anomaly

import (
	"math"
	"time"
)

// Figure is one thing that is watched.
type Figure string

// The figures.
const (
	TTFT   Figure = "ttft"   // seconds
	Gap    Figure = "gap"    // seconds between two tokens of a stream
	Errors Figure = "errors" // share of requests
	Memory Figure = "memory" // bytes
)

// Minute is what was measured in one minute.
type Minute struct {
	At      time.Time
	Workers map[string]Worker // by pool/name; who says nothing is missing
}

// Worker is what was measured of one worker.
type Worker struct {
	Pool    string
	Process string // tells one process from the next: a turn is no anomaly
	Values  map[Figure]Value
}

// Value is a mean, and of how many requests. Memory is of none.
type Value struct {
	Mean float64
	N    int
}

// leastRequests is how many requests a minute must have to bear a point.
const leastRequests = 20

// point is a value's logarithm: times and sizes vary by shares. It reports false if too few
// requests bear it.
func point(f Figure, v Value) (x float64, ok bool) {
	if !(v.Mean > 0) || math.IsInf(v.Mean, 0) || f != Memory && v.N < leastRequests {
		return 0, false
	}
	return math.Log(v.Mean), true
}

// floors are the least effects in seconds that are told of.
var floors = map[Figure]float64{TTFT: 0.05, Gap: 0.002}

// leastEffect is the least change of a time that is told of.
const leastEffect = 0.2

// matters reports whether a time whose logarithm is x, and should be base, is longer by
// enough.
func matters(f Figure, x, base float64) bool {
	is, was := math.Exp(x), math.Exp(base)
	return is-was >= floors[f] && is/was-1 >= leastEffect
}
