package keyring

import (
	"fmt"
	"math"
	"testing"
	"time"

	"roundhouse/configs"
)

// TestKeyBuckets spends and refills a key's limits, and overflows none.
func TestKeyBuckets(t *testing.T) {
	k := &Key{Name: "a", Cfg: configs.Key{TokensPerMinute: 600, MaxConcurrent: 2}, use: &use{}}
	now := time.Unix(1000, 0)
	f := func(name string, after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		got := ""
		if f := k.Enter(now); f != nil {
			got = fmt.Sprint(f.Status, " ", f.RetryAfter)
		}
		if got != want {
			t.Errorf("%s: got %q; want %q", name, got, want)
		}
	}
	f("the first", 0, "")
	k.Charge(500) // as estimated
	f("the second", 0, "")
	f("a third at once", 0, "429 1")
	k.Leave()
	k.Charge(200 - 500) // as it really was: 400 are left
	k.Charge(410)
	f("tokens are used up, by ten", 0, "429 2")
	f("a second and a half later", 1500*time.Millisecond, "")
	k.Charge(math.MaxInt64)
	k.Charge(math.MaxInt64)
	k.Leave()
	f("far beyond the limit", time.Hour, "429 86400")
	k.Charge(math.MinInt64)
	k.Charge(math.MinInt64)
	if k.tokens.remaining != 600 {
		t.Errorf("what is given back fills the bucket to %g; want 600", k.tokens.remaining)
	}
}
