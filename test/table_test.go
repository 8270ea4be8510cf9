package test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// rows returns the rows of the table under a heading of a page, cell by cell.
func rows(t *testing.T, page, heading string) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	if next := strings.Index(after, "\n## "); next >= 0 {
		after = after[:next]
	}
	var out [][]string
	for line := range strings.Lines(after) {
		line = strings.TrimSpace(line)
		if !strings.Contains(line, " | ") || strings.HasPrefix(line, "---|") {
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		out = append(out, cells)
	}
	if len(out) < 2 {
		t.Fatalf("%s: no table under %q", page, heading)
	}
	return out[1:]
}

// The tables that promise say for each row which test shows it; every test that
// they name is there, and no row is without one.
func TestRulesOfTables(t *testing.T) {
	tests := map[string]bool{}
	for _, f := range goFiles(t) {
		if !f.test() {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[fn.Name.Name] = true
			}
		}
	}
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	f := func(page, heading string, column, want int) {
		t.Helper()
		table := rows(t, page, heading)
		if want > 0 && len(table) != want {
			t.Errorf("%s, %s: %d rows; want %d", page, heading, len(table), want)
		}
		for _, cells := range table {
			if len(cells) <= column {
				t.Errorf("%s, %s: a row of %d cells: %v", page, heading, len(cells), cells)
				continue
			}
			named := name.FindAllStringSubmatch(cells[column], -1)
			if len(named) == 0 {
				t.Errorf("%s, %s: no test is named in %v", page, heading, cells)
			}
			for _, m := range named {
				if !tests[m[1]] {
					t.Errorf("%s, %s: there is no %s", page, heading, m[1])
				}
			}
		}
	}
	f("../docs/rotation.md", "## The faults", 2, 32)
	f("../docs/operations.md", "## What survives what", 2, 0)
	for _, page := range []string{"door", "dropin"} {
		f("../docs/"+page+".md", "## What shows it", 1, 0)
	}
	f("../docs/xpu.md", "## What shows it", 2, 0)
}
