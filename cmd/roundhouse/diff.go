package main

import (
	"fmt"
	"strings"
)

// lineDiff shows how b differs from a, line by line: the lines that go with
// "-", those that come with "+"; what says what b is. It is empty where nothing differs.
//
// Formatting changes lines in place and rarely adds one, so the diff walks
// the two side by side, from the longest common subsequence of their lines.
func lineDiff(name, what string, a, b []byte) string {
	if string(a) == string(b) {
		return ""
	}
	x, y := strings.SplitAfter(string(a), "\n"), strings.SplitAfter(string(b), "\n")
	if len(x)*len(y) > 1<<24 {
		return fmt.Sprintf("%s differs, and is too long to show how\n", name)
	}
	common := commonLines(x, y)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s, %s\n", name, name, what)
	line := func(mark string, n int, text string) {
		if text != "" {
			fmt.Fprintf(&out, "%s%4d  %s\n", mark, n+1, strings.TrimRight(text, "\r\n"))
		}
	}
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			i, j = i+1, j+1
		case i < len(x) && (j == len(y) || common[i+1][j] >= common[i][j+1]):
			line("-", i, x[i])
			i++
		default:
			line("+", j, y[j])
			j++
		}
	}
	return out.String()
}

// commonLines returns, for each i and j, how many lines x[i:] and y[j:] have
// in common, in order.
func commonLines(x, y []string) [][]int32 {
	common := make([][]int32, len(x)+1)
	for i := range common {
		common[i] = make([]int32, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}
