package main

import (
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
}
