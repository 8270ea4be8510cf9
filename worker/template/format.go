package template

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// percent is Python's format % values.
func (r *renderer) percent(format text, v value) value {
	args := []value{v}
	if t, ok := v.(*tuple); ok {
		args = t.items
	}
	named, _ := v.(*dict)
	var out builder
	s := format.s
	used := 0
	for i := 0; i < len(s); {
		n := strings.IndexByte(s[i:], '%')
		if n < 0 {
			out.add(format.slice(i, len(s)))
			break
		}
		out.add(format.slice(i, i+n))
		d, rest := r.parseDirective(s[i+n+1:])
		i = len(s) - len(rest)
		if d.verb == '%' {
			out.addString("%")
			continue
		}
		var arg value
		switch {
		case d.key != "" && named != nil:
			x, ok := named.getName(d.key)
			if !ok {
				r.fail("the format names %q, which is not given", d.key)
			}
			arg = x
			used = len(args)
		case used < len(args):
			arg = args[used]
			used++
		default:
			r.fail("not enough arguments for format string")
		}
		out.add(r.formatOne(d, arg))
	}
	if used < len(args) && named == nil {
		r.fail("not all arguments converted during string formatting")
	}
	t := out.text()
	r.made(len(t.s))
	return t
}

// formatDirective is a parsed %-directive.
type formatDirective struct {
	key       string
	flags     string
	width     int
	precision int // -1: none
	verb      byte
}

// maxWidth bounds the width of a formatted value.
const maxWidth = 10_000

func (r *renderer) parseDirective(s string) (formatDirective, string) {
	d := formatDirective{precision: -1}
	if strings.HasPrefix(s, "(") {
		end := strings.IndexByte(s, ')')
		if end < 0 {
			r.fail("incomplete format key")
		}
		d.key, s = s[1:end], s[end+1:]
	}
	n := len(s) - len(strings.TrimLeft(s, "-+ 0#"))
	d.flags, s = s[:n], s[n:]
	digits := func() int {
		n := len(s) - len(strings.TrimLeft(s, "0123456789"))
		x, _ := strconv.Atoi(s[:n])
		s = s[n:]
		if x > maxWidth {
			r.fail("a format's width is %d; at most %d is allowed", x, maxWidth)
		}
		return x
	}
	d.width = digits()
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		d.precision = digits()
	}
	if s == "" {
		r.fail("incomplete format")
	}
	d.verb = s[0]
	return d, s[1:]
}

func (r *renderer) formatOne(d formatDirective, v value) text {
	var t text
	switch d.verb {
	case 's', 'r':
		t = r.str(v)
		if d.verb == 'r' {
			t = r.repr(v)
		}
		if d.precision >= 0 {
			t = t.slice(0, t.offset(d.precision))
		}
		return pad(t, d.width, strings.Contains(d.flags, "-"))
	case 'd', 'i', 'x', 'X', 'o', 'f', 'F', 'e', 'E', 'g', 'G':
		i, f, isInt, ok := number(v)
		if !ok {
			r.checkDefined(v)
			r.fail("%%%c format: a number is required, not %s", d.verb, typeName(v))
		}
		if strings.ContainsRune("dixXo", rune(d.verb)) {
			if !isInt {
				i = int64(math.Trunc(f))
			}
			verb := d.verb
			if verb == 'i' {
				verb = 'd'
			}
			return literal(fmt.Sprintf(d.layout(verb), i))
		}
		return literal(fmt.Sprintf(d.layout(d.verb), f))
	}
	r.fail("unsupported format character %q", d.verb)
	return text{}
}

// layout returns the directive as Go writes it.
func (d formatDirective) layout(verb byte) string {
	s := "%" + d.flags
	if d.width > 0 {
		s += strconv.Itoa(d.width)
	}
	if d.precision >= 0 {
		s += "." + strconv.Itoa(d.precision)
	} else if strings.ContainsRune("gG", rune(verb)) {
		s += ".6"
	}
	return s + string(verb)
}

// pad fills t with spaces to a width, at the right if left is set.
func pad(t text, width int, left bool) text {
	fill := literal(strings.Repeat(" ", max(width-t.length(), 0)))
	if left {
		return concat(t, fill)
	}
	return concat(fill, t)
}
