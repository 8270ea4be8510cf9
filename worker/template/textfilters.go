package template

import (
	"fmt"
	"strings"
	"unicode"
)

// addTextFilters adds the filters that work on strings.
func addTextFilters(m map[string]filterFunc) {
	simple := map[string]func(r *renderer, t text) value{
		"upper":      func(_ *renderer, t text) value { return t.mapped(upperCase) },
		"lower":      func(_ *renderer, t text) value { return t.mapped(lowerCase) },
		"string":     func(_ *renderer, t text) value { return t },
		"safe":       func(_ *renderer, t text) value { return asHTML(t) },
		"capitalize": func(r *renderer, t text) value { return r.capitalize(t) },
		"title":      func(_ *renderer, t text) value { return titleWords(t) },
		"wordcount":  func(_ *renderer, t text) value { return int64(countWords(t.s)) },
		"escape": func(_ *renderer, t text) value {
			if t.html {
				return t
			}
			return asHTML(t.mapped(escapeHTML))
		},
		"urlencode": func(_ *renderer, t text) value { return t.mapped(quoteURL) },
	}
	simple["e"] = simple["escape"]
	simple["forceescape"] = func(_ *renderer, t text) value { return asHTML(t.mapped(escapeHTML)) }
	for name, f := range simple {
		m[name] = func(r *renderer, v value, a *arguments) value {
			r.bind(name, a)
			t := r.str(v)
			r.made(len(t.s))
			return f(r, t)
		}
	}
	m["trim"] = func(r *renderer, v value, a *arguments) value {
		return r.strip(r.str(v), true, true, r.bind("trim", a, "chars")[0])
	}
	m["replace"] = func(r *renderer, v value, a *arguments) value {
		p := r.bind("replace", a, "old", "new", "count")
		if p[0] == nil || p[1] == nil {
			r.fail("replace needs what to replace and by what")
		}
		return r.replace(r.str(v), r.str(*p[0]), r.str(*p[1]), r.intArg(p[2], -1))
	}
	m["center"] = func(r *renderer, v value, a *arguments) value {
		p := r.bind("center", a, "width")
		return r.justify(r.str(v), "center", &arguments{positional: []value{r.intArg(p[0], 80)}})
	}
	m["indent"] = indent
	m["truncate"] = truncate
}

// asHTML marks t as HTML.
func asHTML(t text) text {
	t.html = true
	return t
}

// titleWords makes the first letter of each word upper case.
func titleWords(t text) text {
	begin := true
	return t.mapped(func(s string) string {
		return strings.Map(func(c rune) rune {
			was := begin
			begin = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || isSpace(c)
			if was && !begin {
				return unicode.ToUpper(c)
			}
			return unicode.ToLower(c)
		}, s)
	})
}

func countWords(s string) int {
	n, in := 0, false
	for _, c := range s {
		word := c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c)
		if word && !in {
			n++
		}
		in = word
	}
	return n
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func escapeHTML(s string) string { return htmlEscapes.Replace(s) }

// quoteURL quotes what cannot stand in a URL's path.
func quoteURL(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~/", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func indent(r *renderer, v value, a *arguments) value {
	p := r.bind("indent", a, "width", "first", "blank")
	by := literal("    ")
	if p[0] != nil {
		if t, ok := (*p[0]).(text); ok {
			by = t
		} else {
			n := max(r.intArg(p[0], 4), 0)
			r.made(int(n))
			by = literal(strings.Repeat(" ", int(n)))
		}
	}
	blank := p[2] != nil && truth(*p[2])
	lines := r.lines(concat(r.str(v), literal("\n")), false)
	r.made(len(lines) * (len(by.s) + 1))
	var b builder
	for i, line := range lines {
		t := line.(text)
		if i > 0 {
			b.addString("\n")
		}
		if i > 0 && (blank || t.s != "") || i == 0 && p[1] != nil && truth(*p[1]) {
			b.add(by)
		}
		b.add(t)
	}
	return b.text()
}

func truncate(r *renderer, v value, a *arguments) value {
	p := r.bind("truncate", a, "length", "killwords", "end", "leeway")
	t := r.str(v)
	end := r.textArg(p[2], "...")
	n := int(r.intArg(p[0], 255))
	leeway := int(r.intArg(p[3], 5))
	if n < end.length() || leeway < 0 {
		r.fail("truncate: the length must be at least %d and the leeway at least 0", end.length())
	}
	if t.length() <= n+leeway {
		return t
	}
	cut := t.slice(0, t.offset(n-end.length()))
	if p[1] == nil || !truth(*p[1]) {
		if i := strings.LastIndexByte(cut.s, ' '); i >= 0 {
			cut = cut.slice(0, i)
		}
	}
	return concat(cut, end)
}
