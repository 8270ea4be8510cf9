package template

import (
	"strconv"
	"strings"
)

// braceFormat is Python's str.format, with fields by position or name.
func (r *renderer) braceFormat(t text, a *arguments) value {
	var b builder
	next := 0
	s := t.s
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '{' && c != '}' {
			j := strings.IndexAny(s[i:], "{}")
			if j < 0 {
				j = len(s) - i
			}
			b.add(t.slice(i, i+j))
			i += j - 1
			continue
		}
		if i+1 < len(s) && s[i+1] == c {
			b.add(t.slice(i, i+1))
			i++
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if c == '}' || end < 0 {
			r.fail("a single '%c' stands in the format string", c)
		}
		field, spec, _ := strings.Cut(s[i+1:i+end], ":")
		i += end
		field, conversion, _ := strings.Cut(field, "!")
		v := r.formatField(field, &next, a)
		if conversion == "r" {
			v = r.repr(v)
		}
		b.add(r.formatSpec(v, spec))
	}
	out := b.text()
	r.made(len(out.s))
	return out
}

// formatField finds the value of a field: an argument, and what follows dots
// and brackets.
func (r *renderer) formatField(field string, next *int, a *arguments) value {
	n := strings.IndexAny(field, ".[")
	if n < 0 {
		n = len(field)
	}
	name, path := field[:n], field[n:]
	var v value
	i, err := strconv.Atoi(name)
	if name == "" {
		i, err = *next, nil
		*next++
	}
	if err == nil {
		if i < 0 || i >= len(a.positional) {
			r.fail("replacement index %d out of range", i)
		}
		v = a.positional[i]
	} else {
		found := false
		for j, k := range a.names {
			if k == name {
				v, found = a.named[j], true
			}
		}
		if !found {
			r.fail("the format names %q, which is not given", name)
		}
	}
	for path != "" {
		r.step(1)
		if path[0] == '[' {
			end := strings.IndexByte(path, ']')
			if end < 0 {
				r.fail("expected ] in the format string")
			}
			v = r.item(v, pathKey(path[1:end]))
			path = path[end+1:]
			continue
		}
		end := strings.IndexAny(path[1:], ".[") + 1
		if end == 0 {
			end = len(path)
		}
		v = r.attr(v, path[1:end])
		path = path[end:]
	}
	return v
}

// formatSpec formats a value as [[fill]align][sign][0][width][,][.precision][type].
func (r *renderer) formatSpec(v value, spec string) text {
	if spec == "" {
		return r.str(v)
	}
	fill, align, sign := " ", byte(0), ""
	runes := []rune(spec)
	if len(runes) > 1 && strings.ContainsRune("<>^=", runes[1]) {
		fill, align, spec = string(runes[0]), byte(runes[1]), string(runes[2:])
	} else if strings.ContainsRune("<>^=", runes[0]) {
		align, spec = spec[0], spec[1:]
	}
	if spec != "" && strings.ContainsRune("+- ", rune(spec[0])) {
		sign, spec = spec[:1], spec[1:]
	}
	if strings.HasPrefix(spec, "0") && align == 0 {
		fill, align = "0", '='
	}
	comma := strings.Contains(spec, ",")
	d, rest := r.parseDirective(strings.ReplaceAll(spec, ",", "") + "\x00")
	if d.verb == 0 {
		rest = ""
	}
	if rest != "" && rest != "\x00" {
		r.fail("invalid format specifier %q", spec)
	}
	t := r.formatBody(&d, v, sign)
	if comma {
		t = literal(groupDigits(t.s))
	}
	_, isText := v.(text)
	return r.alignText(t, d.width, fill, align, isText)
}

// formatBody formats the value without its width.
func (r *renderer) formatBody(d *formatDirective, v value, sign string) text {
	plain := formatDirective{flags: strings.TrimPrefix(sign, "-"), precision: d.precision, verb: d.verb}
	_, _, isInt, isNum := number(v)
	if d.verb == 0 {
		plain.verb = 's'
		if isNum && isInt && sign != "" {
			plain.verb = 'd'
		} else if isNum && !isInt && d.precision >= 0 {
			plain.verb = 'g'
		}
	}
	if d.verb == '%' {
		plain.verb = 'f'
		_, f, _, _ := number(v)
		return concat(r.formatOne(plain, f*100), literal("%"))
	}
	return r.formatOne(plain, v)
}

// groupDigits puts commas between thousands.
func groupDigits(s string) string {
	whole, frac, dot := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] >= '0' && whole[i-1] <= '9'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		return whole + "." + frac
	}
	return whole
}

func (r *renderer) alignText(t text, width int, fill string, align byte, isText bool) text {
	n := width - t.length()
	if n <= 0 {
		return t
	}
	times := func(n int) text { return literal(strings.Repeat(fill, n)) }
	switch {
	case align == '^':
		return concat(times(n/2), t, times(n-n/2))
	case align == '<' || align == 0 && isText:
		return concat(t, times(n))
	case align == '=' && t.s != "" && (t.s[0] == '-' || t.s[0] == '+'):
		return concat(t.slice(0, 1), times(n), t.slice(1, len(t.s)))
	}
	return concat(times(n), t)
}
