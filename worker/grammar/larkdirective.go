package grammar

import (
	"bytes"
	"encoding/json"
)

// larkCommon are the terminals of Lark's library common.
var larkCommon = map[string]string{
	"DIGIT":          `[0-9]`,
	"HEXDIGIT":       `[0-9A-Fa-f]`,
	"INT":            `[0-9]+`,
	"SIGNED_INT":     `[+-]?[0-9]+`,
	"DECIMAL":        larkDecimal,
	"_EXP":           larkExp,
	"FLOAT":          larkFloat,
	"SIGNED_FLOAT":   `[+-]?(` + larkFloat + `)`,
	"NUMBER":         `[0-9]+|` + larkFloat,
	"SIGNED_NUMBER":  `[+-]?([0-9]+|` + larkFloat + `)`,
	"ESCAPED_STRING": `"([^"\\]|\\[^\n])*"`,
	"LCASE_LETTER":   `[a-z]`,
	"UCASE_LETTER":   `[A-Z]`,
	"LETTER":         `[A-Za-z]`,
	"WORD":           `[A-Za-z]+`,
	"CNAME":          `[_A-Za-z][_A-Za-z0-9]*`,
	"WS_INLINE":      `[ \t]+`,
	"WS":             `[ \t\f\r\n]+`,
	"CR":             `\r`,
	"LF":             `\n`,
	"NEWLINE":        `(\r?\n)+`,
	"SH_COMMENT":     `#[^\n]*`,
	"CPP_COMMENT":    `//[^\n]*`,
	"C_COMMENT":      `/\*[^*]*\*+([^/*][^*]*\*+)*/`,
	"SQL_COMMENT":    `--[^\n]*`,
}

const (
	larkDecimal = `[0-9]+\.[0-9]*|\.[0-9]+`
	larkExp     = `[eE][+-]?[0-9]+`
	larkFloat   = `(` + larkDecimal + `)(` + larkExp + `)?|[0-9]+` + larkExp
)

// directive reads %ignore, %import and %grammar_options.
func (l *larkParser) directive() {
	switch {
	case l.take("%ignore"):
		// Ignored text is read as a terminal's, without a name to be used by.
		l.ignored = append(l.ignored, l.alternatives(&larkName{terminal: true}))
	case l.take("%import"):
		l.imports()
	case l.take("%grammar_options"):
		l.options()
	default:
		l.fail("of the directives %%ignore, %%import and %%grammar_options are supported")
	}
}

// imports reads common.A, common.A -> B and common (A, B).
func (l *larkParser) imports() {
	l.skip(false)
	if from := l.name(); from != "common" {
		l.fail("%q cannot be imported from; only common can", from)
	}
	if l.take(".") {
		at := l.at
		name := l.name()
		alias := name
		if l.skip(false); l.take("->") {
			l.skip(false)
			alias = l.name()
		}
		l.imported(name, alias, at)
		return
	}
	if l.skip(false); !l.take("(") {
		l.fail("expected . or ( after common")
	}
	for {
		l.skip(true)
		at := l.at
		name := l.name()
		l.imported(name, name, at)
		if l.skip(true); !l.take(",") {
			break
		}
	}
	if !l.take(")") {
		l.fail("expected )")
	}
}

func (l *larkParser) imported(name, alias string, at int) {
	pattern, ok := larkCommon[name]
	n := l.named(alias, at, true)
	switch {
	case !ok:
		l.at = at
		l.fail("common has no %q", name)
	case n.defined:
		l.at = at
		l.fail("%q is there twice", alias)
	}
	n.defined = true
	b := &regexBuilder{p: l.p, what: "common." + name, char: runeRanges}
	l.p.rules[n.rule] = b.build(pattern, false)
}

func (l *larkParser) options() {
	l.skip(false)
	dec := json.NewDecoder(bytes.NewReader([]byte(l.src[l.at:])))
	var raw json.RawMessage
	var options struct {
		Initial bool `json:"allow_initial_skip"`
	}
	err := dec.Decode(&raw)
	if err == nil {
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		err = strict.Decode(&options)
	}
	if err != nil {
		l.fail("%%grammar_options takes an object with allow_initial_skip, true or false: %w", err)
	}
	l.at += int(dec.InputOffset())
	l.initial = options.Initial
}
