package template

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// textMethod returns a method of a string, nil if there is none.
func textMethod(t text, name string) value {
	if f := caseMethod(t, name); f != nil {
		return f
	}
	if f := searchMethod(t, name); f != nil {
		return f
	}
	if f := cutMethod(t, name); f != nil {
		return f
	}
	if is := textIs(name); is != nil {
		return method(name, func(r *renderer, _ *arguments) value {
			r.step(len(t.s) / 16)
			return is(t.s)
		})
	}
	return nil
}

// caseMethod are the methods that change letters, and those that fill.
func caseMethod(t text, name string) value {
	change := map[string]func(string) string{
		"upper": upperCase, "lower": lowerCase, "casefold": lowerCase, "swapcase": swapCase,
	}[name]
	if change != nil {
		return method(name, func(r *renderer, _ *arguments) value {
			r.made(len(t.s))
			return t.mapped(change)
		})
	}
	switch name {
	case "title":
		return method(name, func(r *renderer, _ *arguments) value {
			r.made(len(t.s))
			inWord := false
			return t.mapped(func(s string) string {
				return strings.Map(func(c rune) rune {
					was := inWord
					inWord = unicode.IsLetter(c)
					if was {
						return unicode.ToLower(c)
					}
					return unicode.ToTitle(c)
				}, s)
			})
		})
	case "capitalize":
		return method(name, func(r *renderer, _ *arguments) value { return r.capitalize(t) })
	case "ljust", "rjust", "center", "zfill":
		return method(name, func(r *renderer, a *arguments) value { return r.justify(t, name, a) })
	case "format":
		return method(name, func(r *renderer, a *arguments) value { return r.braceFormat(t, a) })
	}
	return nil
}

func swapCase(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, s)
}

func (r *renderer) capitalize(t text) text {
	r.made(len(t.s))
	first := true
	return t.mapped(func(s string) string {
		return strings.Map(func(c rune) rune {
			if first {
				first = false
				return unicode.ToTitle(c)
			}
			return unicode.ToLower(c)
		}, s)
	})
}

// justify fills a string to a width.
func (r *renderer) justify(t text, name string, a *arguments) value {
	p := r.bind(name, a, "width", "fillchar")
	width := r.intArg(p[0], 0)
	fill := r.textArg(p[1], " ")
	if fill.length() != 1 {
		r.fail("the fill character must be exactly one character long")
	}
	n := int(width) - t.length()
	if n <= 0 {
		return t
	}
	r.made(n * len(fill.s))
	times := func(n int) text { return literal(strings.Repeat(fill.s, n)) }
	switch name {
	case "ljust":
		return concat(t, times(n))
	case "rjust":
		return concat(times(n), t)
	case "zfill":
		fill = literal("0")
		if t.s != "" && (t.s[0] == '-' || t.s[0] == '+') {
			return concat(t.slice(0, 1), times(n), t.slice(1, len(t.s)))
		}
		return concat(times(n), t)
	}
	left := n/2 + n&int(width)&1
	return concat(times(left), t, times(n-left))
}

// intArg returns an argument that must be an int.
func (r *renderer) intArg(p *value, absent int64) int64 {
	if p == nil || *p == nil {
		return absent
	}
	i, _, isInt, ok := number(*p)
	if !ok || !isInt {
		r.checkDefined(*p)
		r.fail("'%s' object cannot be interpreted as an integer", typeName(*p))
	}
	return i
}

// textArg returns an argument that must be a string.
func (r *renderer) textArg(p *value, absent string) text {
	if p == nil || *p == nil {
		return literal(absent)
	}
	t, ok := (*p).(text)
	if !ok {
		r.checkDefined(*p)
		r.fail("a string is required, not %s", typeName(*p))
	}
	return t
}

// searchMethod are the methods that look for something in a string.
func searchMethod(t text, name string) value {
	switch name {
	case "startswith", "endswith":
		has := strings.HasPrefix
		if name == "endswith" {
			has = strings.HasSuffix
		}
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "prefix")
			if p[0] == nil {
				r.fail("%s needs a string", name)
			}
			if many, ok := (*p[0]).(*tuple); ok {
				for _, it := range many.items {
					if has(t.s, r.textArg(&it, "").s) {
						return true
					}
				}
				return false
			}
			return has(t.s, r.textArg(p[0], "").s)
		})
	case "find", "rfind", "index", "rindex":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "sub", "start", "end")
			return r.find(t, name, r.textArg(p[0], ""), p[1], p[2])
		})
	case "count":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "sub")
			r.step(len(t.s) / 16)
			return int64(strings.Count(t.s, r.textArg(p[0], "").s))
		})
	}
	return nil
}

// find is find, rfind, index and rindex.
func (r *renderer) find(t text, name string, sub text, start, end *value) value {
	r.step(len(t.s) / 16)
	n := int64(t.length())
	from, _, count := r.indices(n, [3]*int64{r.optionalInt(start), r.optionalInt(end)})
	window := t.s[t.offset(int(from)):t.offset(int(from+count))]
	search := strings.Index
	if strings.HasPrefix(name, "r") {
		search = strings.LastIndex
	}
	i := search(window, sub.s)
	if i >= 0 {
		return from + int64(utf8.RuneCountInString(window[:i]))
	}
	if strings.HasSuffix(name, "index") {
		r.fail("substring not found")
	}
	return int64(-1)
}

func (r *renderer) optionalInt(p *value) *int64 {
	if p == nil || *p == nil {
		return nil
	}
	i := r.intArg(p, 0)
	return &i
}

// isSpace says what Python strips.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1C && c <= 0x1F }

// strip is strip, lstrip and rstrip; chars may be nil.
func (r *renderer) strip(t text, left, right bool, chars *value) text {
	r.step(len(t.s) / 64)
	cut := isSpace
	if chars != nil && *chars != nil {
		set := r.textArg(chars, "").s
		cut = func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	return t.trim(left, right, cut)
}

// textIs returns the predicate of an is… method.
func textIs(name string) func(string) bool {
	all := func(f func(rune) bool) func(string) bool {
		return func(s string) bool {
			return s != "" && strings.IndexFunc(s, func(c rune) bool { return !f(c) }) < 0
		}
	}
	switch name {
	case "isdigit", "isdecimal":
		return all(unicode.IsDigit)
	case "isnumeric":
		return all(unicode.IsNumber)
	case "isalpha":
		return all(unicode.IsLetter)
	case "isalnum":
		return all(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })
	case "isspace":
		return all(isSpace)
	case "isascii":
		return func(s string) bool { return s == "" || all(func(c rune) bool { return c < 128 })(s) }
	case "isupper":
		return func(s string) bool { return isCased(s) && s == upperCase(s) }
	case "islower":
		return func(s string) bool { return isCased(s) && s == lowerCase(s) }
	}
	return nil
}

func isCased(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return unicode.IsUpper(c) || unicode.IsLower(c) }) >= 0
}
