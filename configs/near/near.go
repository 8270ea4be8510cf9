// Package near finds the name that somebody meant who wrote another one.
package near

import (
	"slices"
	"strings"
)

// mostLetters bounds how much of a name is compared: it may come from anywhere.
const mostLetters = 100

// Name returns the known name that is closest to name, or "" if none is close enough to
// be meant.
func Name(name string, known []string) string {
	name = clip(name)
	best, least := "", (len(name)+1)/3
	for _, k := range known {
		if d := edits(strings.ToLower(name), k); d <= least && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// List returns the n known names that take the fewest edits to get to.
func List(name string, known []string, n int) []string {
	name = clip(name)
	out := slices.Clone(known)
	slices.SortStableFunc(out, func(a, b string) int { return edits(name, a) - edits(name, b) })
	return out[:min(n, len(out))]
}

// Words returns the known name that shares most of its words with name, which "-"
// parts, or "" if none shares any. It finds --max-len for --max-model-len, which many
// edits lie between.
func Words(name string, known []string) string {
	best, score := "", 0
	for _, k := range known {
		n := 0
		for word := range strings.SplitSeq(clip(name), "-") {
			switch {
			case len(word) <= 2:
			case slices.Contains(strings.Split(k, "-"), word):
				n += 2 * len(word)
			case strings.Contains(k, word):
				n += len(word)
			}
		}
		if n > score {
			best, score = k, n
		}
	}
	return best
}

func clip(name string) string { return name[:min(len(name), mostLetters)] }

// edits is the number of letters to insert, delete or change between a and b
// (Levenshtein).
func edits(a, b string) int {
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
