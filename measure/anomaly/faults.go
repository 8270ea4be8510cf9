package anomaly

import "math"

// faults compares a worker's failures with those of its peers by a CUSUM of likelihoods:
// how much better a share of failures well above the usual one explains each minute.
type faults struct {
	bad, all float64 // of the peers, older ones fading
	sum      float64
	mine     [2]float64 // failures and requests since sum was 0
	alarmed  bool
}

// The usual share is never thought less than leastUsual, nor what is looked for less
// than three times as much and leastErrors more. faultBound is the logarithm of the odds.
const (
	leastUsual  = 0.005
	leastErrors = 0.02
	faultBound  = 12
	fading      = 1 - 1.0/120 // a minute
)

// add takes a worker's minute, and the failures and requests of its peers.
func (x *faults) add(v Value, othersBad float64, othersAll int) (Sign, bool) {
	x.bad, x.all = x.bad*fading+othersBad, x.all*fading+float64(othersAll)
	if v.N == 0 || x.all < leastRequests || math.IsNaN(v.Mean) {
		return Sign{}, false
	}
	usual := math.Max(leastUsual, x.bad/x.all)
	wrong := math.Min(0.95, math.Max(3*usual, usual+leastErrors))
	if usual >= wrong {
		return Sign{}, false // all fail: that is no worker's fault
	}
	n := float64(v.N)
	bad := v.Mean * n
	x.mine[0], x.mine[1] = x.mine[0]+bad, x.mine[1]+n
	x.sum += bad*math.Log(wrong/usual) + (n-bad)*math.Log((1-wrong)/(1-usual))
	x.sum = math.Min(x.sum, 2*faultBound)
	if x.sum <= 0 {
		x.sum, x.mine = 0, [2]float64{}
	}
	if x.alarmed {
		x.alarmed = x.sum > faultBound/2
	} else {
		x.alarmed = x.sum >= faultBound
	}
	if !x.alarmed {
		return Sign{}, false
	}
	return Sign{Figure: Errors, Is: x.mine[0] / math.Max(1, x.mine[1]), ShouldBe: x.bad / x.all, Against: "peers"}, true
}
