package main

import (
	"os"
	"testing"
)

// TestFamilies renders the chat templates of model families, and wants what
// transformers makes of them, byte for byte.
func TestFamilies(t *testing.T) {
	const folder = "../../../build/families/templates"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("build/families is not there; `make test` brings it in")
	}
	if err := run(folder, "digests.json", ""); err != nil {
		t.Fatal(err)
	}
}
