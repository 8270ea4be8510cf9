package bench

import (
	"math"
	"math/rand/v2"
	"time"
)

// Load is how requests are spread over time.
type Load struct {
	Rate       float64 // requests a second; +Inf: all at once
	Burstiness float64 // the shape of the gaps' Gamma distribution: 1 is Poisson, less comes in bursts, +Inf is even
	RampUp     string  // "", "linear" or "exponential": the rate goes from Start to End over the requests
	Start, End float64
}

// Schedule returns when each of n requests is due. The gaps are drawn from a Gamma
// distribution of mean 1/rate; without a ramp they are then stretched so that the
// last one ends at n/rate, so that every seed has the rate that was asked for.
func Schedule(n int, l Load, rng *rand.Rand) []time.Duration {
	due := make([]time.Duration, n)
	if l.RampUp == "" && math.IsInf(l.Rate, 1) {
		return due
	}
	at := 0.0
	seconds := make([]float64, n)
	for i := range n {
		at += gap(l.rate(i, n), l.Burstiness, rng)
		seconds[i] = at
	}
	stretch := 1.0
	if l.RampUp == "" && at > 0 {
		stretch = float64(n) / l.Rate / at
	}
	for i, s := range seconds {
		due[i] = time.Duration(s * stretch * float64(time.Second))
	}
	return due
}

// rate is the rate at which request i of n is due.
func (l Load) rate(i, n int) float64 {
	p := float64(i) / float64(max(1, n-1))
	switch l.RampUp {
	case "linear":
		return l.Start + (l.End-l.Start)*p
	case "exponential":
		return l.Start * math.Pow(l.End/l.Start, p)
	}
	return l.Rate
}

// gap draws the time to the next request.
func gap(rate, burstiness float64, rng *rand.Rand) float64 {
	if math.IsInf(burstiness, 1) {
		return 1 / rate
	}
	return gamma(burstiness, rng) / (rate * burstiness)
}

// gamma draws from the Gamma distribution of a shape and scale 1, by the method of
// Marsaglia and Tsang; a shape below 1 is drawn as shape + 1 and a power of a
// uniform number.
func gamma(shape float64, rng *rand.Rand) float64 {
	if shape < 1 {
		return gamma(shape+1, rng) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := rng.Float64(); math.Log(u) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
