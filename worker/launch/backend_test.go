package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"roundhouse/kernels/cpu"
)

// TestCPUs takes of --cpus what this process may run on, and refuses a list of
// which nothing is there: threads without a processor would only be in each
// other's way.
func TestCPUs(t *testing.T) {
	for _, test := range []struct {
		list    string
		allowed []int
		want    []int
		fault   string
	}{
		{"", []int{0, 1}, nil, ""},
		{"0-1", []int{0, 1, 2}, []int{0, 1}, ""},
		{"0-99", []int{4, 5}, []int{4, 5}, ""},
		{"0-3", nil, []int{0, 1, 2, 3}, ""}, // the kernel does not say what is allowed
		{"8,9", []int{0, 1, 2, 3}, nil, "--cpus 8,9: none of them is there; this process may run on 0-3"},
		{"one", []int{0}, nil, `"one" is not a number or a range`},
	} {
		got, err := theirs(test.list, test.allowed)
		if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) || !slices.Equal(got, test.want) {
			t.Errorf("--cpus %q on %v: got %v, %v; want %v, %q", test.list, test.allowed, got, err, test.want, test.fault)
		}
	}
	be, err := openBackend(&Options{Machine: Machine{Device: "cpu", CPUs: "0-4095"}}, cpu.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	threads := 0
	if _, err := fmt.Sscanf(be.Name()[strings.Index(be.Name(), ", ")+2:], "%d", &threads); err != nil || threads > len(affinity()) {
		t.Errorf("%q on %d processors: %v", be.Name(), len(affinity()), err)
	}
}
