package live

import (
	"regexp"
	"strings"
	"unicode"
)

// escapes are the sequences that steer a terminal.
var escapes = regexp.MustCompile("\x1b(\\[[0-9;:?<=>!]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(\x07|\x1b\\\\)?|[ -/]*[0-~])")

// Clean takes out of a text what would steer a terminal or turn the order of what is
// read, and its end of line.
func Clean(text string) string {
	text = escapes.ReplaceAllString(strings.TrimRight(text, "\r\n"), "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
}
