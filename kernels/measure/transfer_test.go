package measure

import "testing"

// An all-reduce's rate is that of a ring's link: twice all but a device's own share.
func TestRateOfReduce(t *testing.T) {
	if r := (Transfer{Way: Reduce, Ranks: 4, Bytes: 1000, Seconds: 1}).Rate(); r != 1500 {
		t.Errorf("%v", r)
	}
}
