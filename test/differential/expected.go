package differential

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// Expected is a row of the table of wanted differences.
type Expected struct {
	Line     int
	Setup    string   // "": of all, else of the one whose name stands before the patterns
	Requests []string // patterns of names, as path.Match has them
	Kinds    []string
	Reason   string
	Met      int // how often it was
}

// heading is what stands above the table.
const heading = "requests | differs in | reason"

// Table reads the table of wanted differences out of docs/api.md.
func Table(file string) ([]*Expected, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*Expected
	inside := false
	for n, line := range strings.Split(string(data), "\n") {
		switch {
		case line == heading:
			inside = true
			continue
		case !inside || strings.HasPrefix(line, "---|"):
			continue
		case !strings.Contains(line, " | "):
			inside = false
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			return nil, fmt.Errorf("%s:%d: %d cells; want requests, kinds and a reason", file, n+1, len(cells))
		}
		e := &Expected{Line: n + 1, Kinds: strings.Fields(cells[1]), Reason: cells[2]}
		for name := range strings.FieldsSeq(cells[0]) {
			pattern := strings.Trim(name, "`")
			if setup, rest, ok := strings.Cut(pattern, ":"); ok {
				e.Setup, pattern = setup+":", rest
			}
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("%s:%d: %q: %w", file, n+1, pattern, err)
			}
			e.Requests = append(e.Requests, pattern)
		}
		out = append(out, e)
	}
	if out == nil {
		return nil, fmt.Errorf("%s has no table under %q", file, heading)
	}
	return out, nil
}

// Wanted reports whether the table has a difference of a setup, and notes that it was met.
func Wanted(table []*Expected, setup string, d Difference) bool {
	for _, e := range table {
		if e.Setup != "" && e.Setup != setup || !slices.Contains(e.Kinds, d.Kind) {
			continue
		}
		for _, pattern := range e.Requests {
			if ok, _ := path.Match(pattern, d.Name); ok { // patterns were tried when they were read
				e.Met++
				return true
			}
		}
	}
	return false
}
