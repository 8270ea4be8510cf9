package sound

import "math"

// The rule by which long sound is cut, which is vLLM's: within the last second
// before the longest piece ends, where a tenth of a second is quietest.
const (
	searched = Rate
	quiet    = Rate / 10
)

// Cut divides sound into pieces of at most so many samples.
func Cut(samples []float32, longest int) [][]float32 {
	var pieces [][]float32
	for len(samples) > longest {
		at := quietest(samples, max(0, longest-searched), longest)
		if at <= 0 {
			at = longest
		}
		pieces, samples = append(pieces, samples[:at]), samples[at:]
	}
	return append(pieces, samples)
}

// quietest is where the quietest tenth of a second begins, of those that lie side
// by side from first to end.
func quietest(samples []float32, first, end int) int {
	least, at := math.Inf(1), first
	for i := first; i < end-quiet; i += quiet {
		var sum float64
		for _, v := range samples[i : i+quiet] {
			sum += float64(v) * float64(v)
		}
		if sum < least {
			least, at = sum, i
		}
	}
	return at
}
