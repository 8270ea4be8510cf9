package template

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// str is Python's str(v): what printing a value gives.
func (r *renderer) str(v value) text {
	switch v := v.(type) {
	case text:
		return v
	case *undefined:
		return text{}
	}
	return r.repr(v)
}

// repr is Python's repr(v).
func (r *renderer) repr(v value) text {
	var b builder
	r.addRepr(&b, v, 0)
	return b.text()
}

func (r *renderer) addRepr(b *builder, v value, depth int) {
	r.step(1)
	if depth > maxNesting {
		r.fail("a value is nested deeper than %d levels", maxNesting)
	}
	items := func(open string, items []value, shut string) {
		b.addString(open)
		for i, it := range items {
			if i > 0 {
				b.addString(", ")
			}
			r.addRepr(b, it, depth+1)
		}
		b.addString(shut)
	}
	switch v := v.(type) {
	case nil:
		b.addString("None")
	case bool:
		b.addString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.addString(strconv.FormatInt(v, 10))
	case float64:
		b.addString(floatRepr(v))
	case text:
		r.made(len(v.s))
		addQuoted(b, v)
	case *list:
		items("[", v.items, "]")
	case *tuple:
		if len(v.items) == 1 {
			items("(", v.items, ",)")
			return
		}
		items("(", v.items, ")")
	case *dict:
		b.addString("{")
		for i, e := range v.entries {
			if i > 0 {
				b.addString(", ")
			}
			r.addRepr(b, e.key, depth+1)
			b.addString(": ")
			r.addRepr(b, e.val, depth+1)
		}
		b.addString("}")
	case *undefined:
		b.addString("Undefined")
	case *namespace:
		b.addString("<Namespace ")
		r.addRepr(b, v.fields, depth+1)
		b.addString(">")
	case *macro:
		b.addString(fmt.Sprintf("<Macro '%s'>", v.def.name))
	default:
		b.addString("<" + typeName(v) + " object>")
	}
}

// addQuoted adds t as Python writes a string.
func addQuoted(b *builder, t text) {
	quote := byte('\'')
	if strings.Contains(t.s, "'") && !strings.Contains(t.s, `"`) {
		quote = '"'
	}
	b.addString(string(quote))
	b.add(t.mapped(func(s string) string {
		var out strings.Builder
		for _, c := range s {
			switch {
			case c == rune(quote) || c == '\\':
				out.WriteByte('\\')
				out.WriteRune(c)
			case c == '\n':
				out.WriteString(`\n`)
			case c == '\r':
				out.WriteString(`\r`)
			case c == '\t':
				out.WriteString(`\t`)
			case c < 0x20 || c >= 0x7F && c <= 0xFF && !unicode.IsPrint(c):
				fmt.Fprintf(&out, `\x%02x`, c)
			case c > 0xFFFF && !unicode.IsPrint(c):
				fmt.Fprintf(&out, `\U%08x`, c)
			case c > 0xFF && !unicode.IsPrint(c):
				fmt.Fprintf(&out, `\u%04x`, c)
			default:
				out.WriteRune(c)
			}
		}
		return out.String()
	}))
	b.addString(string(quote))
}

// floatRepr writes a float as Python does: the shortest digits that give it
// back, with an exponent below 1e-4 and from 1e16.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
