package main

import (
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// mostAgain is how many tests are worth a second look. More than these are a change that
// broke something, and no machine that was busy.
const mostAgain = 2

// test is a top-level test of a package.
type test struct{ pkg, name string }

// again lists what may be run once more: tests that failed in their own words. A package
// that does not build, a panic, a data race and a test that never ended are failures as
// they stand.
func again(fallen []string) []test {
	var list []test
	for _, key := range fallen {
		pkg, name, _ := strings.Cut(key, " ")
		name, _, _ = strings.Cut(name, "/")
		if name == "" || strings.HasSuffix(key, ")") {
			return nil
		}
		if t := (test{pkg, name}); !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	if len(list) > mostAgain {
		return nil
	}
	return list
}

// alone runs each test once more with nothing beside it and reports whether all passed.
func alone(out io.Writer, command []string, tests []test) bool {
	for _, t := range tests {
		args := slices.Concat(command[1:], []string{"-count=1", "-v", "-run", "^" + t.name + "$", t.pkg})
		text, err := exec.Command(command[0], args...).CombinedOutput()
		if err != nil || !strings.Contains(string(text), "--- PASS: "+t.name) {
			fmt.Fprintf(out, "FAIL  %s %s, alone as well: %v\n%s", t.pkg, t.name, err, text)
			return false
		}
	}
	return true
}
