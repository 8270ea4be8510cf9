package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestSummarise(t *testing.T) {
	f := func(in string, want counts, names ...string) {
		t.Helper()
		got, fallen, err := summarise(strings.NewReader(in), io.Discard)
		if err != nil || got != want || !slices.Equal(fallen, names) {
			t.Fatalf("got %+v, %q, %v; want %+v, %q", got, fallen, err, want, names)
		}
	}

	f(`{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}`, counts{passed: 1})
	f(`{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}`, counts{failed: 1}, "p A") // the package's own line is not a second one
	f(`{"Action":"fail","Package":"p"}`, counts{failed: 1}, "p ") // did not build
	f(`{"Action":"output","Package":"p","Test":"A","Output":"panic: test timed out"}
{"Action":"fail","Package":"p"}`, counts{failed: 1}, "p ", "p A (not ended)")
	f(`{"Action":"skip","Package":"p","Test":"A"}
{"Action":"skip","Package":"q"}`, counts{skipped: 1}) // a package without tests skips nothing
	f(`{"Action":"start","Package":"p"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"=== RUN   B"}`, counts{passed: 1, failed: 1}, "p (not ended)", "p B (not ended)") // go test was killed
	f(`{"Action":"start","Package":"p"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}`, counts{passed: 1})
}

// Of a test that writes much, the beginning and the end are kept.
func TestOutput(t *testing.T) {
	o := new(output)
	for i := range 1000 {
		o.add(fmt.Sprintln("line", i))
	}
	text := o.String()
	for _, want := range []string{"line 0\n", "line 199\n    … 600 lines …\nline 800\n", "line 999\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not kept", want)
		}
	}
}
