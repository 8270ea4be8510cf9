package api

import (
	"testing"
	"time"
)

// TestWaited believes a door that a request has waited, within bounds.
func TestWaited(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "1500": 1500 * time.Millisecond, "599999": MostWaited - time.Millisecond, "600001": MostWaited,
		"18446744073709551615": MostWaited, "18446744073709551616": 0, "-5": 0, "1e9": 0, "NaN": 0, " 7": 0,
	} {
		if got := Waited(header); got != want {
			t.Errorf("%q: got %v; want %v", header, got, want)
		}
	}
}
