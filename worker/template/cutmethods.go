package template

import (
	"slices"
	"strings"
)

// cutMethod are the methods that cut a string, or put one together.
func cutMethod(t text, name string) value {
	switch name {
	case "strip", "lstrip", "rstrip":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "chars")
			return r.strip(t, name != "rstrip", name != "lstrip", p[0])
		})
	case "split", "rsplit":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "sep", "maxsplit")
			n := r.intArg(p[1], -1)
			if p[0] == nil || *p[0] == nil {
				return &list{r.words(t, int(n), name == "rsplit")}
			}
			return &list{r.split(t, r.textArg(p[0], ""), int(n), name == "rsplit")}
		})
	case "splitlines":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "keepends")
			return &list{r.lines(t, p[0] != nil && truth(*p[0]))}
		})
	case "partition", "rpartition":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "sep")
			return r.partition(t, r.textArg(p[0], ""), name == "rpartition")
		})
	case "replace":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "old", "new", "count")
			return r.replace(t, r.textArg(p[0], ""), r.textArg(p[1], ""), r.intArg(p[2], -1))
		})
	case "removeprefix", "removesuffix":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "affix")
			s := r.textArg(p[0], "").s
			if name == "removeprefix" {
				return t.slice(len(t.s)-len(strings.TrimPrefix(t.s, s)), len(t.s))
			}
			return t.slice(0, len(strings.TrimSuffix(t.s, s)))
		})
	case "join":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "iterable")
			if p[0] == nil {
				r.fail("join needs what to join")
			}
			items := r.iterate(*p[0])
			for i, it := range items {
				if _, ok := it.(text); !ok {
					r.fail("sequence item %d: expected str instance, %s found", i, typeName(it))
				}
			}
			return r.joinTexts(t, items)
		})
	}
	return nil
}

// joinTexts puts the items' text together with sep between.
func (r *renderer) joinTexts(sep text, items []value) text {
	var b builder
	for i, it := range items {
		if i > 0 {
			b.add(sep)
		}
		t := r.str(it)
		r.made(len(b.buf) + len(t.s) - len(b.buf)*15/16)
		b.add(t)
	}
	r.made(len(b.buf))
	return b.text()
}

// replace counts the work and bounds the result before it is made.
func (r *renderer) replace(t, old, by text, n int64) text {
	times := strings.Count(t.s, old.s)
	if n >= 0 {
		times = min(times, int(n))
	}
	r.made(len(t.s) + times*max(len(by.s)-len(old.s), 0))
	r.step(times)
	return t.replace(old, by, int(max(n, -1)))
}

// split cuts t at sep, at most n times (any number if n < 0).
func (r *renderer) split(t, sep text, n int, fromRight bool) []value {
	if sep.s == "" {
		r.fail("empty separator")
	}
	r.made(len(t.s))
	var out []value
	rest := t
	for ; n != 0; n-- {
		i := strings.Index(rest.s, sep.s)
		if fromRight {
			i = strings.LastIndex(rest.s, sep.s)
		}
		if i < 0 {
			break
		}
		r.step(1 + len(rest.content))
		head, tail := rest.slice(0, i), rest.slice(i+len(sep.s), len(rest.s))
		if fromRight {
			out = append([]value{tail}, out...)
			r.step(len(out))
			rest = head
			continue
		}
		out = append(out, head)
		rest = tail
	}
	if fromRight {
		return append([]value{rest}, out...)
	}
	return append(out, rest)
}

// words cuts t at runs of white space, at most n times; what is left over
// keeps the spaces at its far end.
func (r *renderer) words(t text, n int, fromRight bool) []value {
	r.made(len(t.s))
	if fromRight {
		return r.wordsFromRight(t, n)
	}
	var out []value
	rest := t.trim(true, false, isSpace)
	for rest.s != "" {
		r.step(1 + len(rest.content))
		i := strings.IndexFunc(rest.s, isSpace)
		if n == 0 || i < 0 {
			return append(out, rest)
		}
		out = append(out, rest.slice(0, i))
		rest = rest.slice(i, len(rest.s)).trim(true, false, isSpace)
		n--
	}
	return out
}

func (r *renderer) wordsFromRight(t text, n int) []value {
	var out []value
	rest := t.trim(false, true, isSpace)
	for rest.s != "" {
		r.step(1 + len(rest.content))
		i := strings.LastIndexFunc(rest.s, isSpace)
		if n == 0 || i < 0 {
			out = append(out, rest)
			break
		}
		out = append(out, rest.slice(i, len(rest.s)).trim(true, false, isSpace))
		rest = rest.slice(0, i).trim(false, true, isSpace)
		n--
	}
	slices.Reverse(out)
	return out
}

// lines cuts t where Python's splitlines does.
func (r *renderer) lines(t text, keepEnds bool) []value {
	r.made(len(t.s))
	var out []value
	at := 0
	for i, c := range t.s {
		if i < at || !strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", c) {
			continue
		}
		end := i + len(string(c))
		if c == '\r' && strings.HasPrefix(t.s[end:], "\n") {
			end++
		}
		r.step(1)
		if keepEnds {
			out = append(out, t.slice(at, end))
		} else {
			out = append(out, t.slice(at, i))
		}
		at = end
	}
	if at < len(t.s) {
		out = append(out, t.slice(at, len(t.s)))
	}
	return out
}

func (r *renderer) partition(t, sep text, fromRight bool) value {
	if sep.s == "" {
		r.fail("empty separator")
	}
	i := strings.Index(t.s, sep.s)
	if fromRight {
		i = strings.LastIndex(t.s, sep.s)
	}
	switch {
	case i >= 0:
		return &tuple{items: []value{t.slice(0, i), sep, t.slice(i+len(sep.s), len(t.s))}}
	case fromRight:
		return &tuple{items: []value{text{}, text{}, t}}
	}
	return &tuple{items: []value{t, text{}, text{}}}
}
