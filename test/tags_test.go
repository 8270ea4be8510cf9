package test

import (
	"bytes"
	"go/ast"
	"go/build/constraint"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tagged is a line of the Makefile that runs tests behind build tags.
type tagged struct {
	tags     map[string]bool
	run      *regexp.Regexp
	packages []string
}

func (l tagged) covers(dir string) bool {
	for _, p := range l.packages {
		p = strings.TrimPrefix(p, "./")
		if p == dir || p == "..." || strings.HasSuffix(p, "/...") && below(dir, strings.TrimSuffix(p, "/...")) {
			return true
		}
	}
	return false
}

// taggedLines reads the Makefile.
func taggedLines(t *testing.T) (lines []tagged) {
	t.Helper()
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile(`-run (?:'([^']*)'|(\S+))`)
	for line := range strings.Lines(string(text)) {
		_, after, found := strings.Cut(line, "$(GO) test ")
		if !found {
			continue
		}
		l := tagged{tags: map[string]bool{}, run: regexp.MustCompile("")}
		if m := quoted.FindStringSubmatch(after); m != nil {
			l.run = regexp.MustCompile(strings.ReplaceAll(m[1]+m[2], "$$", "$"))
			after = strings.Replace(after, m[0], "", 1)
		}
		after, _, _ = strings.Cut(after, " | ")
		words := strings.Fields(after)
		for i, w := range words {
			if w == "-tags" {
				for tag := range strings.SplitSeq(words[i+1], ",") {
					l.tags[tag] = true
				}
			}
			if strings.HasPrefix(w, "./") {
				l.packages = append(l.packages, w)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// plain reports whether a build has a tag without being given it.
func plain(tag string) bool { return tag == "linux" || tag == "unix" || tag == "amd64" }

// scripts build the tests of a tag themselves, and name their folders.
var scripts = map[string]string{"vm": "vm/run"}

// A test behind a build tag that no target gives, or whose name a target's -run
// leaves out, never runs, and nobody is told. Here is no such test.
func TestRulesOfTags(t *testing.T) {
	lines := taggedLines(t)
	runs := func(f file, expr constraint.Expr, name string) bool {
		dir := filepath.ToSlash(filepath.Dir(f.path))
		for _, l := range lines {
			if l.covers(dir) && l.run.MatchString(name) && expr.Eval(func(tag string) bool { return plain(tag) || l.tags[tag] }) {
				return true
			}
		}
		for tag, script := range scripts {
			text, err := os.ReadFile(script)
			if err == nil && bytes.Contains(text, []byte(dir)) && expr.Eval(func(t string) bool { return plain(t) || t == tag }) {
				return true
			}
		}
		return false
	}
	for _, f := range goFiles(t) {
		if !f.test() {
			continue
		}
		for _, group := range f.ast.Comments {
			if !constraint.IsGoBuild(group.List[0].Text) || group.Pos() > f.ast.Package {
				continue
			}
			expr, err := constraint.Parse(group.List[0].Text)
			if err != nil {
				t.Fatalf("%s: %v", f.path, err)
			}
			if expr.Eval(plain) || expr.Eval(func(tag string) bool { return plain(tag) || tag == "race" }) {
				continue // it runs without a tag, or with the race detector's
			}
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
					continue
				}
				if !runs(f, expr, fn.Name.Name) {
					t.Errorf("%s: no target of the Makefile runs %s, which stands behind %s", f.path, fn.Name.Name, group.List[0].Text)
				}
			}
		}
	}
}
