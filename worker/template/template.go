package template

import (
	"fmt"
	"time"
	"unicode/utf8"

	"roundhouse/worker/tokenizer"
)

// A Template is a parsed chat template. It is immutable, and may be rendered
// by many goroutines at once.
type Template struct {
	nodes   []node
	filters map[string]filterFunc
	tests   map[string]testFunc
}

// maxSource bounds a template's length in bytes. The longest in use have
// about 20 KiB.
const maxSource = 1 << 20

// Limits bound one Render, and say what time it is.
type Limits struct {
	// Steps bounds the work: each expression and statement is a step, and so
	// are 16 bytes of text made. 0: 10 000 000, less than a second's work.
	Steps int

	// Output bounds the bytes of the result, and of every string on the way.
	// 0: 64 MiB.
	Output int

	// Depth bounds how deep macros and recursive loops call each other.
	// 0: 100.
	Depth int

	// Now is the time that strftime_now prints. The zero time makes
	// strftime_now fail.
	Now time.Time
}

func (l Limits) withDefaults() Limits {
	if l.Steps == 0 {
		l.Steps = 10_000_000
	}
	if l.Output == 0 {
		l.Output = 64 << 20
	}
	if l.Depth == 0 {
		l.Depth = 100
	}
	return l
}

// Parse reads a template. It returns an *Error for what is wrong in it or not
// supported.
func Parse(src string) (t *Template, err error) {
	if len(src) > maxSource {
		return nil, &Error{1, fmt.Sprintf("the template has %d bytes; at most %d are allowed", len(src), maxSource)}
	}
	if !utf8.ValidString(src) {
		return nil, &Error{1, "the template is not UTF-8"}
	}
	defer recoverError(&err)
	t = &Template{filters: builtinFilters(), tests: builtinTests()}
	p := &parser{tokens: lex(src), filters: t.filters, tests: t.tests}
	t.nodes, _ = p.body()
	return t, nil
}

// recoverError turns what parser and renderer throw into an error. Any other
// panic is a bug and goes on.
func recoverError(err *error) {
	switch x := recover().(type) {
	case nil:
	case *Error:
		*err = x
	case *RaisedError:
		*err = x
	case *LimitError:
		*err = x
	default:
		panic(x)
	}
}

// Render runs the template. Variables may hold nil, bool, int, int64,
// float64, json.Number, string, Literal, slices, map[string]any (its keys
// sorted) and *Dict; FromJSON makes them from a request's body. Strings are
// content unless they are Literal.
//
// The segments' text in order is the prompt. The error is a *RaisedError if
// the template refused the messages, a *LimitError if it was stopped, and an
// *Error if it failed.
func (t *Template) Render(vars map[string]any, limits Limits) (segments []tokenizer.Segment, err error) {
	r := &renderer{template: t, limits: limits.withDefaults(), out: &builder{}}
	top := &scope{vars: make(map[string]value, len(vars))}
	for name, v := range vars {
		x, err := convert(v, 0)
		if err != nil {
			return nil, fmt.Errorf("chat template: variable %s: %w", name, err)
		}
		top.vars[name] = x
	}
	defer recoverError(&err)
	r.body(t.nodes, &scope{vars: map[string]value{}, up: top})
	return r.out.text().segments(), nil
}

// RenderString is Render with the segments joined.
func (t *Template) RenderString(vars map[string]any, limits Limits) (string, error) {
	segments, err := t.Render(vars, limits)
	var b builder
	for _, s := range segments {
		b.addString(s.Text)
	}
	return string(b.buf), err
}
