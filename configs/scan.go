package configs

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The bounds of a file, held before it is parsed: the parser recurses with
// the nesting, and a Go stack that overflows cannot be recovered.
const (
	MaxFileSize = 1 << 20 // bytes; some ten thousand workers
	MaxNesting  = 32      // brackets, quotes and templates inside one another
)

// scan returns the first reason why src must not reach the parser, or nil.
func scan(file string, src []byte) *Diagnostic {
	at := func(r hcl.Range, format string, args ...any) *Diagnostic {
		d := diagnose(file, src, r, fmt.Sprintf(format, args...))
		return &d
	}
	if len(src) > MaxFileSize {
		return &Diagnostic{File: file, Message: fmt.Sprintf("is larger than %s, the most that a configuration may be", Size(MaxFileSize))}
	}
	if bytes.HasPrefix(src, []byte{0xff, 0xfe}) || bytes.HasPrefix(src, []byte{0xfe, 0xff}) {
		return &Diagnostic{File: file, Message: "is UTF-16; save it as UTF-8"}
	}
	if i := invalidUTF8(src); i >= 0 {
		line := 1 + bytes.Count(src[:i], []byte{'\n'})
		column := 1 + utf8.RuneCount(src[1+bytes.LastIndexByte(src[:i], '\n'):i])
		pos := hcl.Pos{Line: line, Column: column, Byte: i}
		return at(hcl.Range{Start: pos, End: pos}, "byte %#02x is not UTF-8; save the file as UTF-8", src[i])
	}

	tokens, _ := hclsyntax.LexConfig(src, file, hcl.InitialPos)
	depth := 0
	previous := hclsyntax.TokenNil
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			depth--
		case hclsyntax.TokenBang, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPlus, hclsyntax.TokenPercent,
			hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq,
			hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenAnd, hclsyntax.TokenOr,
			hclsyntax.TokenQuestion, hclsyntax.TokenEllipsis, hclsyntax.TokenFatArrow, hclsyntax.TokenDoubleColon:
			return at(t.Range, "%q has no meaning here: a configuration holds values, env(\"NAME\") and file(\"path\"), no calculations", t.Bytes)
		case hclsyntax.TokenMinus:
			if previous == hclsyntax.TokenMinus {
				return at(t.Range, "two minus signs in a row")
			}
		}
		if depth > MaxNesting {
			return at(t.Range, "nested more than %d deep", MaxNesting)
		}
		previous = t.Type
	}
	return nil
}

// invalidUTF8 returns the place of the first byte that is not UTF-8, or -1.
func invalidUTF8(src []byte) int {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}
