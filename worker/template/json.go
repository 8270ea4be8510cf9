package template

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// jsonStyle is how tojson writes.
type jsonStyle struct {
	ascii    bool
	indent   string // of one level; only with multiline
	multi    bool
	item     string // between two items
	key      string // between key and value
	sortKeys bool
}

// tojson writes a value as Python's json.dumps does, with ensure_ascii off.
func tojson(r *renderer, v value, a *arguments) value {
	p := r.bind("tojson", a, "ensure_ascii", "indent", "separators", "sort_keys")
	st := jsonStyle{item: ", ", key: ": "}
	st.ascii = p[0] != nil && truth(*p[0])
	st.sortKeys = p[3] != nil && truth(*p[3])
	if p[1] != nil && *p[1] != nil {
		st.multi = true
		st.item = ","
		if n, _, isInt, ok := number(*p[1]); ok && isInt {
			st.indent = strings.Repeat(" ", int(min(max(n, 0), 64)))
		} else {
			st.indent = r.str(*p[1]).s
		}
	}
	if p[2] != nil && *p[2] != nil {
		parts := r.iterate(*p[2])
		if len(parts) != 2 {
			r.fail("tojson: separators are a pair")
		}
		st.item, st.key = r.str(parts[0]).s, r.str(parts[1]).s
	}
	var b builder
	r.addJSON(&b, v, st, 0)
	return b.text()
}

func (r *renderer) addJSON(b *builder, v value, st jsonStyle, depth int) {
	r.step(1)
	if depth > maxNesting {
		r.fail("a value is nested deeper than %d levels", maxNesting)
	}
	switch v := v.(type) {
	case nil:
		b.addString("null")
	case bool:
		b.addString(strconv.FormatBool(v))
	case int64:
		b.addString(strconv.FormatInt(v, 10))
	case float64:
		b.addString(floatJSON(v))
	case text:
		r.made(len(v.s))
		b.addString(`"`)
		b.add(v.mapped(func(s string) string { return escapeJSON(s, st.ascii) }))
		b.addString(`"`)
	case *list:
		r.addJSONItems(b, v.items, st, depth)
	case *tuple:
		r.addJSONItems(b, v.items, st, depth)
	case *dict:
		r.addJSONDict(b, v, st, depth)
	default:
		r.checkJSON(v)
	}
}

func (r *renderer) checkJSON(v value) {
	r.fail("Object of type %s is not JSON serializable", typeName(v))
}

// line begins a new line where the style has them.
func (st jsonStyle) line(b *builder, depth int) {
	if st.multi {
		b.addString("\n" + strings.Repeat(st.indent, depth))
	}
}

func (r *renderer) addJSONItems(b *builder, items []value, st jsonStyle, depth int) {
	if len(items) == 0 {
		b.addString("[]")
		return
	}
	b.addString("[")
	for i, it := range items {
		if i > 0 {
			b.addString(st.item)
		}
		st.line(b, depth+1)
		r.addJSON(b, it, st, depth+1)
	}
	st.line(b, depth)
	b.addString("]")
}

func (r *renderer) addJSONDict(b *builder, d *dict, st jsonStyle, depth int) {
	if d.len() == 0 {
		b.addString("{}")
		return
	}
	entries := d.entries
	if st.sortKeys {
		entries = append([]entry(nil), entries...)
		sort.SliceStable(entries, func(i, j int) bool { return r.compare("<", entries[i].key, entries[j].key) == -1 })
	}
	b.addString("{")
	for i, e := range entries {
		if i > 0 {
			b.addString(st.item)
		}
		st.line(b, depth+1)
		r.addJSON(b, r.jsonKey(e.key), st, depth+1)
		b.addString(st.key)
		r.addJSON(b, e.val, st, depth+1)
	}
	st.line(b, depth)
	b.addString("}")
}

// jsonKey returns a key as the string that it becomes.
func (r *renderer) jsonKey(k value) value {
	switch k := k.(type) {
	case text:
		return k
	case nil:
		return literal("null")
	case bool:
		return literal(strconv.FormatBool(k))
	case int64:
		return literal(strconv.FormatInt(k, 10))
	case float64:
		return literal(floatJSON(k))
	}
	r.fail("keys must be str, int, float, bool or None, not %s", typeName(k))
	return nil
}

func floatJSON(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatRepr(f)
}

// escapeJSON escapes what Python escapes in a JSON string.
func escapeJSON(s string, ascii bool) string {
	var out strings.Builder
	for _, c := range s {
		switch c {
		case '"', '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case '\n':
			out.WriteString(`\n`)
		case '\r':
			out.WriteString(`\r`)
		case '\t':
			out.WriteString(`\t`)
		case '\b':
			out.WriteString(`\b`)
		case '\f':
			out.WriteString(`\f`)
		default:
			switch {
			case c < 0x20 || ascii && c >= 0x7F && c <= 0xFFFF:
				fmt.Fprintf(&out, `\u%04x`, c)
			case ascii && c > 0xFFFF:
				c -= 0x10000
				fmt.Fprintf(&out, `\u%04x\u%04x`, 0xD800+c>>10, 0xDC00+c&0x3FF)
			default:
				out.WriteRune(c)
			}
		}
	}
	return out.String()
}
