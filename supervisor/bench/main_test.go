package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The night with our supervisor has no second without service, whatever the
// engines take and whichever requests come; each engine starts once. And what
// README.md prints is what comes out.
func TestNight(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nights(1) {
		for seed := range uint64(20) {
			n.seed = seed
			if r := ours(n); r.down > 0 || r.lost > 0 || r.refused > 0 || r.rotations != 2 {
				t.Errorf("start %d s, seed %d: %+v", n.start, seed, r)
			}
		}
		n.seed = 1
		if n.start == 120 { // much as the next: the page leaves it out
			continue
		}
		for who, r := range map[string]result{"script in cron": script(n), "roundhouse": ours(n)} {
			if line := row(n, who, r); !strings.Contains(string(page), line) {
				t.Errorf("README.md has no line %q", line)
			}
		}
	}
	if r := script(night{120, 30, 2, 1}); r.down == 0 || r.rotations < 20 {
		t.Errorf("the script's night: %s", fmt.Sprintf("%+v", r))
	}
}
