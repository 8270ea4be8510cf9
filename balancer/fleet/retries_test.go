package fleet

import "testing"

// TestRetriesAreOfAWindow: a million requests of an hour ago allow no storm of retries
// now; those of the last seconds do, by their share.
func TestRetriesAreOfAWindow(t *testing.T) {
	var r Retries
	const second = int64(1e9)
	now := second
	spendAll := func(want int) {
		t.Helper()
		n := 0
		for r.Spend(now, 0.2) {
			n++
		}
		if n != want {
			t.Errorf("%d retries at once; want %d", n, want)
		}
	}
	for range 1_000_000 {
		now += second / 1000
		r.Came(now)
	}
	now += 3600 * second
	spendAll(freeRetries)
	for range 1000 {
		r.Came(now)
		now += 4 * second / 1000
	}
	spendAll(200) // beside the free ones, which are spent within this window
	now += 3 * second
	spendAll(0)
	now += retrySlots * second
	spendAll(freeRetries)
}

// TestRetriesAcrossSlots: what a slot counted is out of the window ten seconds later, to
// the second.
func TestRetriesAcrossSlots(t *testing.T) {
	var r Retries
	now := int64(100e9)
	for range 100 {
		r.Came(now)
	}
	for range freeRetries + 100 {
		r.Spend(now, 1)
	}
	now += 9e9
	if r.Spend(now, 1) {
		t.Error("nine seconds later, the budget is whole again")
	}
	now += 1e9
	for i := range freeRetries {
		if !r.Spend(now, 1) {
			t.Fatalf("ten seconds later, only %d retries", i)
		}
	}
	if r.Spend(now, 1) {
		t.Error("and more than that are allowed, for requests that are out of the window")
	}
}
