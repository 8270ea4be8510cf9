package top

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"roundhouse/live"
)

// clean takes out of a name or a reason what would steer the terminal.
func clean(text string) string { return live.Clean(text) }

// figure is a number in three digits; "-": it is not known.
func figure(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 1e6:
		return fmt.Sprintf("%.3gM", *v/1e6)
	case *v >= 1e4:
		return fmt.Sprintf("%.3gk", *v/1e3)
	case *v >= 100:
		return fmt.Sprintf("%.0f", *v)
	}
	return fmt.Sprintf("%.3g", *v)
}

func seconds(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v < 1:
		return fmt.Sprintf("%.0fms", *v*1000)
	}
	return fmt.Sprintf("%.3gs", *v)
}

func share(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", *v*100)
}

func whole(v *int64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func count(v *int) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

// cut leaves as much of a line as fits, colours not counted.
func cut(line string, wide int) string {
	var b strings.Builder
	seen, coloured := 0, false
	for len(line) > 0 {
		if strings.HasPrefix(line, "\x1b[") {
			end := strings.IndexByte(line, 'm') + 1
			if end == 0 {
				break
			}
			coloured = line[:end] != "\x1b[0m"
			b.WriteString(line[:end])
			line = line[end:]
			continue
		}
		r, n := utf8.DecodeRuneInString(line)
		w := width(r)
		if seen+w > wide {
			break
		}
		seen += w
		b.WriteRune(r)
		line = line[n:]
	}
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// cell is a text cut and padded to a width.
func cell(text string, wide int) string {
	text = cut(text, wide)
	for _, r := range text {
		wide -= width(r)
	}
	return text + strings.Repeat(" ", max(0, wide))
}

// width is how many cells a character takes.
func width(r rune) int {
	switch {
	case r >= 0x0300 && r <= 0x036f, r == 0x200b, r == 0x200d, r >= 0xfe00 && r <= 0xfe0f:
		return 0
	case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd):
		return 2
	}
	return 1
}
