package cpu

import (
	"fmt"
	"testing"
)

// Rows are taken in calls of like size where there are shapes for it, and
// always all of them.
func TestFitting(t *testing.T) {
	f := func(shapes string, rows int, want string) {
		t.Helper()
		var all []multiply
		var r, c int
		for text := shapes; text != ""; text = text[min(len(text), 4):] {
			if _, err := fmt.Sscanf(text, "%dx%d", &r, &c); err != nil {
				t.Fatal(err)
			}
			all = append(all, multiply{rows: r, tiles: c})
		}
		got, width := "", 0
		for rows > 0 {
			m := all[fitting(all, rows, 2, width)]
			got, width = got+fmt.Sprintf("%dx%d ", m.rows, m.tiles), m.tiles
			rows -= m.rows
		}
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
	six := "6x2 5x2 4x2 3x2 2x2 6x1 5x1 4x1 3x1 2x1 1x4 1x2 1x1"
	f(six, 1, "1x2 ")
	f(six, 6, "6x2 ")
	f(six, 7, "4x2 3x2 ")
	f(six, 9, "5x2 4x2 ")
	f(six, 13, "6x2 4x2 3x2 ")
	f(six, 16, "6x2 5x2 5x2 ")
	four := "4x2 2x2 1x2 4x1 2x1 1x1"
	f(four, 7, "4x2 2x2 1x2 ")
	f(four, 5, "4x2 1x2 ")
	f(four, 6, "4x2 2x2 ")
	f("1x1", 2, "1x1 1x1 ")
}
