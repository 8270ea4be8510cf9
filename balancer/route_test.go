package balancer

import (
	"fmt"
	"math"
	"testing"

	"roundhouse/configs"
)

// TestSameOnEveryDoor: where a session goes depends on nothing that a door
// has of its own, and a target that goes moves its own sessions alone.
func TestSameOnEveryDoor(t *testing.T) {
	cfg := configs.Route{Name: "r", Targets: []configs.Target{{Model: "a", Weight: 50}, {Model: "b", Weight: 30}, {Model: "c", Weight: 20}}}
	one, other := makeRoutes([]configs.Route{cfg}, &snapshot{})["r"], makeRoutes([]configs.Route{cfg}, &snapshot{})["r"]
	all := func(string) bool { return true }
	const n = 20_000
	count := map[int]int{}
	for i := range n {
		s := fmt.Sprint("session ", i)
		at := one.choose(s, all)
		count[at]++
		other.choose("", all) // its turns are elsewhere
		if got := other.choose(s, all); got != at {
			t.Fatalf("%s goes to %d and %d", s, at, got)
		}
		left := one.choose(s, func(model string) bool { return model != "c" })
		if at != 2 && left != at {
			t.Fatalf("%s moved from %d to %d when another target went", s, at, left)
		}
	}
	for i, target := range cfg.Targets {
		share := float64(target.Weight) / 100
		if sigma := math.Sqrt(n * share * (1 - share)); math.Abs(float64(count[i])-n*share) > 3*sigma {
			t.Errorf("%s has %d of %d sessions; want %.0f ± %.0f", target.Model, count[i], n, n*share, 3*sigma)
		}
	}
	turns := map[int]int{}
	for range 100 {
		turns[one.choose("", all)]++
	}
	if turns[0] != 50 || turns[1] != 30 || turns[2] != 20 {
		t.Errorf("100 turns are shared as %v", turns)
	}
}
