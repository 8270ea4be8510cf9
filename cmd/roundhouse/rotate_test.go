package main

import (
	"strings"
	"testing"
)

// Between two turns there is nothing to tell; what is told is told once.
func TestRotateProgress(t *testing.T) {
	var out strings.Builder
	r := &rotation{console: &console{out: &out}}
	waits := "a blackout until 08:00"
	for _, now := range []rotationAnswer{{}, {Waiting: &waits}, {Waiting: &waits}, {}} {
		if err := r.progress(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	if want := "[0/0] waiting: a blackout until 08:00\n"; out.String() != want {
		t.Errorf("printed %q; want %q", out.String(), want)
	}
}
