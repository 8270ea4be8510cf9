package configs

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// Diagnostic is one thing that is wrong with a configuration file.
type Diagnostic struct {
	File    string `json:"file"`
	Line    int    `json:"line"`    // from 1; 0: the file as a whole
	Column  int    `json:"column"`  // from 1, in characters
	Message string `json:"message"` // the fault and its remedy
	Source  string `json:"source"`  // the line, without its secrets

	width int // characters of the source line to mark; 0: the line is not as it stands in the file
}

// String returns the diagnostic with its source line, over several lines.
func (d Diagnostic) String() string {
	if d.Line == 0 {
		return d.File + ": " + d.Message
	}
	number := fmt.Sprintf("%5d | ", d.Line)
	text := fmt.Sprintf("%s:%d:%d: %s\n%s%s", d.File, d.Line, d.Column, d.Message, number, d.Source)
	if d.width > 0 {
		text += "\n" + strings.Repeat(" ", len(number)+d.Column-1) + strings.Repeat("^", d.width)
	}
	return text
}

// Diagnostics is all that is wrong with a file, in the order of its lines.
// It is the error that Load and Parse return for a file that they could read.
type Diagnostics []Diagnostic

// Error returns all diagnostics, one after the other.
func (ds Diagnostics) Error() string {
	parts := make([]string, len(ds))
	for i, d := range ds {
		parts[i] = d.String()
	}
	return strings.Join(parts, "\n")
}

// secretAssignment finds a value that a source line must not show: one given
// to a name that sounds like a secret, or that follows such a flag.
var secretAssignment = regexp.MustCompile(`(?i)([a-z0-9_-]*(?:token|key|secret|passw)[a-z0-9_-]*"?\s*[=:,]\s*)(\[?\s*".*|<<.*)`)

// maxSource bounds the part of a line that is shown.
const maxSource = 160

// diagnose makes a Diagnostic of a place in a source.
func diagnose(file string, src []byte, r hcl.Range, message string) Diagnostic {
	d := Diagnostic{File: file, Line: r.Start.Line, Column: r.Start.Column, Message: message, width: 1}
	if r.End.Line == r.Start.Line {
		d.width = max(r.End.Column-r.Start.Column, 1)
	}
	line := printable(lineAt(src, r.Start.Byte))
	shown := secretAssignment.ReplaceAllString(line, `$1"`+hiddenText+`"`)
	if chars := []rune(shown); len(chars) > maxSource {
		shown = string(chars[:maxSource]) + " …"
	}
	d.width = min(d.width, utf8.RuneCountInString(shown)-d.Column+1)
	if !strings.HasPrefix(line, strings.TrimSuffix(shown, " …")) || d.width < 0 {
		d.width = 0
	}
	d.Source = shown
	return d
}

// lineAt returns the line that byte i of src lies in, without its end.
func lineAt(src []byte, i int) string {
	i = max(min(i, len(src)), 0)
	start := 1 + bytes.LastIndexByte(src[:i], '\n')
	line, _, _ := bytes.Cut(src[start:], []byte{'\n'})
	return strings.TrimRight(string(line), "\r")
}

// printable replaces characters that would move a terminal's cursor. A tab becomes one
// space, so that the marks stand below the right character.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}
