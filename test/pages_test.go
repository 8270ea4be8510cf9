package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A newcomer reads the pages in an afternoon. A page that grows takes its words
// from another, or from what the program's own help and errors say.
func TestRulesOfPages(t *testing.T) {
	const most = 20_000
	pages, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, page := range append(pages, below...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		sum += len(strings.Fields(string(text)))
	}
	if sum > most {
		t.Errorf("README.md, its neighbours and docs/*.md have %d words; they may have %d (wc -w *.md docs/*.md): cut where you add", sum, most)
	}
	if len(below) < 10 {
		t.Errorf("only %d pages found in docs", len(below))
	}
}
