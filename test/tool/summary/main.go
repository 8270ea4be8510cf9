// Summary reads `go test -json` and prints what a person wants to know: a line
// a package, the output of what failed, what was skipped, and closing lines: what
// failed, by name, and the counts. Where CI is set, a skipped test is a failure: a check that
// did not run is not a check.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// counts is what a run came to.
type counts struct{ passed, failed, skipped int }

func main() {
	name := "tests"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	c, fallen, err := summarise(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "summary: cannot read the test events: %v\n", err)
		os.Exit(1)
	}
	for _, key := range fallen { // once more, where nobody overlooks it
		fmt.Println("FAIL ", key)
	}
	fmt.Printf("%s: %d passed, %d failed, %d skipped\n", name, c.passed, c.failed, c.skipped)
	if c.failed > 0 || c.passed == 0 {
		os.Exit(1)
	}
	if c.skipped > 0 && os.Getenv("CI") != "" {
		fmt.Println("summary: in CI a skipped test is a failure")
		os.Exit(1)
	}
}

// summarise counts the tests of a run, writes what is worth reading of it, and
// returns the names of what failed. A package that fails without a failed test (it did not build, it panicked)
// counts as one failure.
func summarise(in io.Reader, out io.Writer) (c counts, fallen []string, err error) {
	outputs := map[string][]string{} // of "package test", until it has ended
	failed := map[string]bool{}      // packages with a failed test
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var e event
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			fmt.Fprintln(out, scan.Text()) // the toolchain's own words
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			if len(outputs[key]) < 400 {
				outputs[key] = append(outputs[key], e.Output)
			}
			continue
		case "pass":
			if e.Test != "" {
				c.passed++
			} else {
				fmt.Fprintf(out, "ok    %-40s %6.1fs\n", e.Package, e.Elapsed)
			}
		case "skip":
			if e.Test != "" {
				c.skipped++
				fmt.Fprintf(out, "skip  %s %s: %s\n", e.Package, e.Test, reason(outputs[key]))
			}
		case "fail", "build-fail":
			if e.Test != "" {
				failed[e.Package] = true
			}
			if e.Test != "" || !failed[e.Package] {
				c.failed++
				fallen = append(fallen, key)
			}
			fmt.Fprintf(out, "FAIL  %s\n%s", key, strings.Join(outputs[key], ""))
			if e.Test == "" {
				fallen = append(fallen, unfinished(out, outputs, key)...)
			}
		default:
			continue
		}
		delete(outputs, key)
	}
	return c, fallen, scan.Err()
}

// unfinished writes what the tests of a package had said that never ended, and returns
// their names: a panic or a timeout ends the package in the middle of them.
func unfinished(out io.Writer, outputs map[string][]string, pkg string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(outputs)) {
		if key != pkg && strings.HasPrefix(key, pkg) {
			fmt.Fprintf(out, "  not ended: %s\n%s", key, strings.Join(outputs[key], ""))
			names = append(names, key+" (not ended)")
			delete(outputs, key)
		}
	}
	return names
}

// reason finds the words of a t.Skip among a test's output.
func reason(lines []string) string {
	for _, l := range slices.Backward(lines) {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "---") && !strings.HasPrefix(l, "===") {
			return l
		}
	}
	return "no reason given"
}
