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
	f(`{"Action":"output","Package":"p","Test":"A","Output":"    testing.go:1712: race detected during execution of test\n"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}`, counts{failed: 1}, "p A (data race)")
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

// One or two tests that failed in their own words are looked at again; nothing else is.
func TestAgain(t *testing.T) {
	f := func(want []test, fallen ...string) {
		t.Helper()
		if got := again(fallen); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", fallen, got, want)
		}
	}
	f([]test{{"p", "A"}}, "p A/sub", "p A")
	f([]test{{"p", "A"}, {"q", "A"}}, "p A", "q A")
	f(nil, "p A", "p B", "p C")
	f(nil, "p A", "q ")             // q did not build
	f(nil, "p ", "p A (not ended)") // a panic
	f(nil, "p A (data race)", "p B")
	f(nil, "p (not ended)", "q A") // the run was ended
	f(nil)
}

// The second look fails with a test that fails, and with a name that no test has.
func TestAlone(t *testing.T) {
	const pkg = "roundhouse/test/tool/summary"
	if !alone(t.Output(), []string{"go", "test"}, []test{{pkg, "TestOutput"}}) {
		t.Error("a test that passes failed")
	}
	if alone(io.Discard, []string{"go", "test"}, []test{{pkg, "TestOutput"}, {pkg, "TestOfNobody"}}) {
		t.Error("a test that is not there passed")
	}
}
