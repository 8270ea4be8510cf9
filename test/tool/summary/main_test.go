package main

import (
	"io"
	"strings"
	"testing"
)

func TestSummarise(t *testing.T) {
	f := func(in string, want counts) {
		t.Helper()
		got, err := summarise(strings.NewReader(in), io.Discard)
		if err != nil || got != want {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
	}

	f(`{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}`, counts{passed: 1})
	f(`{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}`, counts{failed: 1}) // the package's own line is not a second one
	f(`{"Action":"fail","Package":"p"}`, counts{failed: 1}) // did not build
	f(`{"Action":"skip","Package":"p","Test":"A"}
{"Action":"skip","Package":"q"}`, counts{skipped: 1}) // a package without tests skips nothing
}
