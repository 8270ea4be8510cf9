package model

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/models.md")

// TestTable holds docs/models.md to the code.
func TestTable(t *testing.T) {
	const page = "../../docs/models.md"
	if *update {
		if err := os.WriteFile(page, []byte(Table()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != Table() {
		t.Fatalf("%s is not what the code says; run: go test ./worker/model -run TestTable -update", page)
	}
}

// TestFixturesBelong: every golden file is some architecture's.
func TestFixturesBelong(t *testing.T) {
	used := map[string]bool{quantisedFixture + ".json": true, quantisedExperts + ".json": true, quantisedGroups + ".json": true}
	for _, a := range architectures() {
		used[a.fixture+".json"], used[a.embeds+".json"], used["gguf_"+a.gguf+".json"] = true, true, true
	}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); len(name) > 5 && name[len(name)-5:] == ".json" && !used[name] {
			t.Errorf("testdata/%s is no architecture's", name)
		}
	}
}
