package template

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// upperCase and lowerCase map whole strings as Python does: ß becomes SS, and
// a sigma that ends a word becomes ς.

func upperCase(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lowerCase(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
