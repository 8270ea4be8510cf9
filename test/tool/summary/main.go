// Summary reads `go test -json` and prints what a person wants to know: a line
// a package, the output of what failed, what was skipped, and closing lines: what
// failed, by name, and the counts. Where CI is set, a skipped test is a failure: a check that
// did not run is not a check.
//
//	go test -json ./... | summary NAME [go test]
//
// With a command, one or two tests that failed beside all the others are run with it once
// more, alone. If they pass then, the run passes, and its last lines name them as unsteady:
// a defect to be found, and no reason to refuse what somebody else changed.
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
	if tests := again(fallen); len(os.Args) > 2 && len(tests) > 0 && alone(os.Stdout, os.Args[2:], tests) {
		for _, t := range tests {
			fmt.Printf("UNSTEADY  %s %s: failed beside others (above), passed alone\n", t.pkg, t.name)
		}
		c.failed = 0
		fallen = nil
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
	outputs := map[string]*output{} // of "package test", until it has ended
	failed := map[string]bool{}     // packages with a failed test
	running := map[string]bool{}    // packages that have begun and not ended
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
		case "start":
			running[e.Package] = true
			continue
		case "output", "build-output":
			if outputs[key] == nil {
				outputs[key] = new(output)
			}
			outputs[key].add(e.Output)
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
				fmt.Fprintf(out, "skip  %s %s: %s\n", e.Package, e.Test, reason(outputs[key].lines()))
			}
		case "fail", "build-fail":
			if e.Test != "" {
				failed[e.Package] = true
			}
			if e.Test != "" || !failed[e.Package] {
				c.failed++
				if strings.Contains(outputs[key].String(), "race detected during execution of test") {
					fallen = append(fallen, key+" (data race)")
				} else {
					fallen = append(fallen, key)
				}
			}
			fmt.Fprintf(out, "FAIL  %s\n%s", key, outputs[key])
			if e.Test == "" {
				fallen = append(fallen, unfinished(out, outputs, key)...)
			}
		default:
			continue
		}
		delete(outputs, key)
		if e.Test == "" {
			delete(running, e.Package)
		}
	}
	// `go test` itself was ended: what it did not come to has not passed.
	for _, pkg := range slices.Sorted(maps.Keys(running)) {
		c.failed++
		fallen = append(fallen, pkg+" (not ended)")
		fallen = append(fallen, unfinished(out, outputs, pkg+" ")...)
	}
	return c, fallen, scan.Err()
}

// output is what a test wrote: its beginning and its end, where a panic stands.
type output struct {
	head, tail []string
	left       int // lines between them
}

func (o *output) add(line string) {
	const most = 200 // lines of each
	switch {
	case len(o.head) < most:
		o.head = append(o.head, line)
	case len(o.tail) < most:
		o.tail = append(o.tail, line)
	default:
		copy(o.tail, o.tail[1:])
		o.tail[most-1] = line
		o.left++
	}
}

// lines are what is kept, in order.
func (o *output) lines() []string {
	if o == nil {
		return nil
	}
	if o.left == 0 {
		return slices.Concat(o.head, o.tail)
	}
	return slices.Concat(o.head, []string{fmt.Sprintf("    … %d lines …\n", o.left)}, o.tail)
}

func (o *output) String() string { return strings.Join(o.lines(), "") }

// unfinished writes what the tests of a package had said that never ended, and returns
// their names: a panic or a timeout ends the package in the middle of them.
func unfinished(out io.Writer, outputs map[string]*output, pkg string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(outputs)) {
		if key != pkg && strings.HasPrefix(key, pkg) {
			fmt.Fprintf(out, "  not ended: %s\n%s", key, outputs[key])
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
