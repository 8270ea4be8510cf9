package template

// global returns a function that every template has, nil if there is none of
// that name.
func global(name string) value {
	switch name {
	case "range":
		return &function{name, rangeOf}
	case "dict":
		return &function{name, func(r *renderer, a *arguments) value { return r.newDictOf(a) }}
	case "namespace":
		return &function{name, func(r *renderer, a *arguments) value { return &namespace{r.newDictOf(a)} }}
	case "raise_exception":
		return &function{name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "message")
			message := ""
			if p[0] != nil {
				message = r.str(*p[0]).s
			}
			panic(&RaisedError{message})
		}}
	case "strftime_now":
		return &function{name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "format")
			if p[0] == nil {
				r.fail("strftime_now needs a format")
			}
			if r.limits.Now.IsZero() {
				r.fail("strftime_now is not available here")
			}
			return literal(strftime(r.limits.Now, r.str(*p[0]).s))
		}}
	case "cycler":
		return &function{name, func(r *renderer, a *arguments) value {
			if len(a.positional) == 0 {
				r.fail("at least one item has to be provided")
			}
			return &cycler{items: a.positional}
		}}
	case "joiner":
		return &function{name, newJoiner}
	}
	return nil
}

func rangeOf(r *renderer, a *arguments) value {
	if len(a.positional) < 1 || len(a.positional) > 3 || len(a.names) > 0 {
		r.fail("range takes 1 to 3 arguments")
	}
	var n [3]int64
	for i, v := range a.positional {
		x, _, isInt, ok := number(v)
		if !ok || !isInt {
			r.checkDefined(v)
			r.fail("'%s' object cannot be interpreted as an integer", typeName(v))
		}
		n[i] = x
	}
	from, to, step := int64(0), n[0], int64(1)
	if len(a.positional) > 1 {
		from, to = n[0], n[1]
	}
	if len(a.positional) > 2 {
		step = n[2]
	}
	if step == 0 {
		r.fail("range() arg 3 must not be zero")
	}
	out := &list{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		r.step(1)
		out.items = append(out.items, i)
	}
	return out
}

// newDictOf is dict(...): of another dict or pairs, and of keywords.
func (r *renderer) newDictOf(a *arguments) *dict {
	d := newDict()
	for _, p := range a.positional {
		if from, ok := p.(*dict); ok {
			r.step(from.len())
			for _, e := range from.entries {
				d.set(e.key, e.val)
			}
			continue
		}
		for _, pair := range r.iterate(p) {
			kv := r.iterate(pair)
			if len(kv) != 2 || !d.set(kv[0], kv[1]) {
				r.fail("dict takes pairs of a key and a value")
			}
		}
	}
	for i, n := range a.names {
		d.setName(n, a.named[i])
	}
	return d
}

// cycler goes through its items over and over.
type cycler struct {
	items []value
	at    int
}

func (c *cycler) attr(name string) value {
	switch name {
	case "current":
		return c.items[c.at]
	case "next":
		return &function{name, func(*renderer, *arguments) value {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}}
	case "reset":
		return &function{name, func(*renderer, *arguments) value {
			c.at = 0
			return nil
		}}
	}
	return undefinedf("'Cycler object' has no attribute '%s'", name)
}

// newJoiner returns a function that gives nothing at first and a separator
// from then on.
func newJoiner(r *renderer, a *arguments) value {
	sep := literal(", ")
	if p := r.bind("joiner", a, "sep"); p[0] != nil {
		sep = r.str(*p[0])
	}
	used := false
	return &function{"joiner", func(*renderer, *arguments) value {
		if !used {
			used = true
			return text{}
		}
		return sep
	}}
}
