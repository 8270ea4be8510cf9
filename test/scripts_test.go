package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The scripts of the console are held to what the Go is: a file is one noun, a
// function is seen whole, and nothing reads text as markup or asks another host.
func TestRulesOfScripts(t *testing.T) {
	const fileLines, funcLines, columns = 500, 70, 180
	begins := regexp.MustCompile(`^(export )?(async )?function\*? (\w+)`)
	never := map[string]*regexp.Regexp{
		"makes markup of text":        regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc`),
		"runs text":                   regexp.MustCompile(`\beval\(|new Function|setTimeout\(['"]`),
		"names another host":          regexp.MustCompile(`['"(]https?://[a-z0-9.]+\.[a-z]|//cdn`),
		"keeps what every port reads": regexp.MustCompile(`document\.cookie`),
	}
	out, err := exec.Command("git", "-C", "..", "ls-files", "-co", "--exclude-standard", "web/ui").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	scripts := 0
	for _, path := range strings.Fields(string(out)) {
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			continue // deleted, not yet committed
		}
		lines := strings.Split(string(text), "\n")
		if len(lines) > fileLines+1 {
			t.Errorf("%s has %d lines; a file has at most %d: is it one noun?", path, len(lines)-1, fileLines)
		}
		for why, pattern := range never {
			if at := pattern.FindIndex(bytes.ReplaceAll(text, []byte("http://www.w3.org/"), nil)); at != nil {
				t.Errorf("%s:%d: this %s: %s", path, 1+strings.Count(string(text[:at[0]]), "\n"), why, text[at[0]:at[1]])
			}
		}
		if filepath.Ext(path) != ".js" {
			continue
		}
		scripts++
		if !strings.HasPrefix(lines[0], "// ") {
			t.Errorf("%s does not begin with what it is for", path)
		}
		name, from := "", 0
		for i, line := range lines {
			if len(line) > columns {
				t.Errorf("%s:%d has %d columns; a line has at most %d", path, i+1, len(line), columns)
			}
			if m := begins.FindStringSubmatch(line); m != nil {
				name, from = m[3], i
			}
			if line == "}" && name != "" {
				if n := i - from + 1; n > funcLines {
					t.Errorf("%s:%d: %s has %d lines; a function has at most %d", path, from+1, name, n, funcLines)
				}
				name = ""
			}
		}
	}
	if scripts < 10 {
		t.Fatalf("only %d scripts found: where is the console?", scripts)
	}
}
