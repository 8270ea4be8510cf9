package model

import (
	"fmt"
	"slices"
	"strings"
)

// architecture is one row of the table of what is supported.
type architecture struct {
	name     string // as "architectures" of config.json has it
	kind     Kind
	families string // what people know it by
	features string // what the golden test covers, for docs/models.md
	fixture  string // testdata/<fixture>.json holds its golden test

	defaults func(*settings) // before config.json is read
	finish   func(*settings) // after; nil: nothing
	record   func(*graph)
}

// architectures is the table, in the order of the documentation.
func architectures() []architecture {
	return []architecture{
		{name: "LlamaForCausalLM", kind: Generate, fixture: "llama", defaults: llamaDefaults, record: llama,
			families: "Llama 2, Llama 3.x, DeepSeek-R1-Distill-Llama",
			features: "GQA, RoPE (default, linear, llama3, YaRN), biases, tied or untied head"},
		{name: "Qwen2ForCausalLM", kind: Generate, fixture: "qwen2", defaults: qwen2Defaults, finish: qwenWindows, record: qwen2,
			families: "Qwen2, Qwen2.5, QwQ, DeepSeek-R1-Distill-Qwen",
			features: "GQA, biases, windows on the upper layers, YaRN"},
		{name: "Qwen3ForCausalLM", kind: Generate, fixture: "qwen3", defaults: qwen3Defaults, finish: qwenWindows, record: qwen3,
			families: "Qwen3 (dense)",
			features: "GQA, QK norms, tied or untied head, YaRN"},
	}
}

// findArchitecture picks the row of the first name of config.json.
func findArchitecture(names []string) (architecture, error) {
	if len(names) == 0 {
		return architecture{}, fmt.Errorf("config.json: architectures is missing or empty")
	}
	table := architectures()
	i := slices.IndexFunc(table, func(a architecture) bool { return a.name == names[0] })
	if i >= 0 {
		return table[i], nil
	}
	return architecture{}, fmt.Errorf("config.json: architecture %.100q is not supported; the nearest that are: %s", names[0], strings.Join(nearest(names[0], table, 3), ", "))
}

// nearest lists the n names of the table that take the fewest edits to get to.
func nearest(name string, table []architecture, n int) []string {
	if len(name) > 100 {
		name = name[:100]
	}
	names := make([]string, len(table))
	for i, a := range table {
		names[i] = a.name
	}
	slices.SortStableFunc(names, func(a, b string) int { return distance(name, a) - distance(name, b) })
	return names[:min(n, len(names))]
}

// distance is Levenshtein's: insertions, deletions and replacements.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
