package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The committed assembly is what the generator writes.
func TestFiles(t *testing.T) {
	for name, want := range Files() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the generator writes: run go generate ./kernels/cpu", name)
		}
	}
}
