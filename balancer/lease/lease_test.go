package lease

import (
	"testing"
	"time"

	"roundhouse/balancer/control"
)

// TestLease fences one supervisor off while another one's lease runs.
func TestLease(t *testing.T) {
	began := time.Unix(1000, 0)
	l := Lease{Until: began.Add(Term)}
	now := &control.WorkerSet{Epoch: 5, Version: 7, Holder: "a"}
	f := func(name string, after time.Duration, epoch, version uint64, holder string, want bool) {
		t.Helper()
		err := l.Admits(&control.WorkerSet{Epoch: epoch, Version: version, Holder: holder}, now, began.Add(after))
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	f("the holder again", time.Second, 5, 7, "a", true)
	f("the holder with a change", time.Second, 5, 8, "a", true)
	f("the holder, late", time.Hour, 5, 8, "a", true)
	f("an older version", time.Second, 5, 6, "a", false)
	f("an older epoch", time.Second, 4, 9, "a", false)
	f("an older epoch after the lease", time.Hour, 4, 9, "b", false)
	f("a higher epoch within the lease", time.Second, 9, 1, "b", false)
	f("a higher epoch at its last moment", Term-1, 9, 1, "b", false)
	f("a higher epoch at its end", Term, 9, 1, "b", true)
	f("another one of the same epoch", time.Second, 5, 8, "b", false)
	f("one without a name within the lease", time.Second, 9, 1, "", false)
	f("the holder, started again on its journal", time.Second, 6, 1, "a", true)
	now.Holder = ""
	f("nobody is the same as nobody", time.Second, 6, 1, "", false)
}
