package model

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

var update = flag.Bool("update", false, "write the list of docs/models.md")

// TestTable holds the list of docs/models.md to the code.
func TestTable(t *testing.T) {
	const page = "../../docs/models.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	from := bytes.Index(text, []byte("- `LlamaForCausalLM`"))
	if from < 0 {
		t.Fatalf("%s has no list of architectures", page)
	}
	size := bytes.Index(text[from:], []byte("\n\n")) + 1
	if size == 0 {
		t.Fatalf("%s ends in its list", page)
	}
	if *update {
		if err := os.WriteFile(page, slices.Concat(text[:from], []byte(Table()), text[from+size:]), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text[from:from+size]) != Table() {
		t.Fatalf("the list of %s is not what the code says; run: go test ./worker/model -run TestTable -update", page)
	}
}

// span is a setting of a golden file that a sequence has to pass.
var span = regexp.MustCompile(`[".](sliding_window|original_max_position_embeddings|original_context_length)":(?:\["uint32",)?(\d+)`)

// TestSequencesPass: the sequences of golden files are longer than every window,
// three pages, and what YaRN and its kin were stretched from.
func TestSequencesPass(t *testing.T) {
	seen := map[string]bool{}
	for _, arch := range architectures() {
		if arch.kind != Generate {
			continue
		}
		names := []string{arch.fixture}
		if arch.gguf != nil {
			names = append(names, "gguf_"+arch.fixture)
		}
		for _, name := range names {
			raw, err := os.ReadFile("testdata/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var f struct{ IDs []int32 }
			readJSON(t, name, &f)
			n := len(f.IDs)
			if n <= 3*blockTokens {
				t.Errorf("%s: %d tokens are no more than three pages of %d", name, n, blockTokens)
			}
			for _, m := range span.FindAllStringSubmatch(string(raw), -1) {
				seen[m[1]] = true
				if long, _ := strconv.Atoi(m[2]); long >= n {
					t.Errorf("%s: %d tokens do not pass %s %s", name, n, m[1], m[2])
				}
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("golden files have %v alone", seen)
	}
}

// TestFixturesBelong: every golden file is some architecture's.
func TestFixturesBelong(t *testing.T) {
	used := map[string]bool{quantisedFixture + ".json": true, quantisedExperts + ".json": true, quantisedGroups + ".json": true, "lora.json": true}
	for _, a := range architectures() {
		used[a.fixture+".json"], used[a.embeds+".json"], used["gguf_"+a.fixture+".json"] = true, true, true
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
