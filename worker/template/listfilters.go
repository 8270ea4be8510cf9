package template

import (
	"sort"
	"strconv"
	"strings"
)

// pathKey returns a part of an attribute's path: a number is an index.
func pathKey(s string) value {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil && i >= 0 {
		return i
	}
	return literal(s)
}

// attribute returns what finds an attribute such as "a.b.0" of an item; the
// item itself without one.
func (r *renderer) attribute(p *value) func(value) value {
	if p == nil || *p == nil {
		return func(v value) value { return v }
	}
	if i, _, isInt, ok := number(*p); ok && isInt {
		return func(v value) value { return r.item(v, i) }
	}
	parts := strings.Split(r.textArg(p, "").s, ".")
	return func(v value) value {
		for _, part := range parts {
			r.step(1)
			v = r.item(v, pathKey(part))
		}
		return v
	}
}

// folded returns what sorts and compares keys: without case for strings,
// unless caseSensitive is true.
func (r *renderer) folded(key func(value) value, caseSensitive *value) func(value) value {
	if caseSensitive != nil && truth(*caseSensitive) {
		return key
	}
	return func(v value) value {
		k := key(v)
		if t, ok := k.(text); ok {
			r.made(len(t.s))
			return literal(lowerCase(t.s))
		}
		return k
	}
}

// sorted returns items in the order of their keys.
func (r *renderer) sorted(in []value, key func(value) value, reverse bool) []value {
	type keyed struct{ k, v value }
	all := make([]keyed, len(in))
	for i, it := range in {
		all[i] = keyed{key(it), it}
	}
	sort.SliceStable(all, func(i, j int) bool {
		if reverse {
			return r.compare("<", all[j].k, all[i].k) == -1
		}
		return r.compare("<", all[i].k, all[j].k) == -1
	})
	out := make([]value, len(in))
	for i, it := range all {
		out[i] = it.v
	}
	return out
}

func sortFilter(r *renderer, v value, a *arguments) value {
	p := r.bind("sort", a, "reverse", "case_sensitive", "attribute")
	key := r.attribute(p[2])
	if p[2] != nil {
		if t, ok := (*p[2]).(text); ok && strings.Contains(t.s, ",") {
			key = r.attributes(t.s)
		}
	}
	return &list{r.sorted(r.iterate(v), r.folded(key, p[1]), p[0] != nil && truth(*p[0]))}
}

// attributes returns what finds several attributes, as a list to sort by.
func (r *renderer) attributes(names string) func(value) value {
	var keys []func(value) value
	for _, n := range strings.Split(names, ",") {
		var name value = literal(n)
		keys = append(keys, r.folded(r.attribute(&name), nil))
	}
	return func(v value) value {
		out := &list{}
		for _, k := range keys {
			out.items = append(out.items, k(v))
		}
		return out
	}
}

func dictSort(r *renderer, v value, a *arguments) value {
	p := r.bind("dictsort", a, "case_sensitive", "by", "reverse")
	d, ok := v.(*dict)
	if !ok {
		r.checkDefined(v)
		r.fail("dictsort needs a dict, not %s", typeName(v))
	}
	at := map[string]int{"key": 0, "value": 1}
	by, ok := at[r.textArg(p[1], "key").s]
	if !ok {
		r.fail(`You can only sort by either "key" or "value"`)
	}
	key := r.folded(func(v value) value { return v.(*tuple).items[by] }, p[0])
	return &list{r.sorted(d.items(), key, p[2] != nil && truth(*p[2]))}
}

func groupBy(r *renderer, v value, a *arguments) value {
	p := r.bind("groupby", a, "attribute", "default", "case_sensitive")
	plain := r.attribute(p[0])
	withDefault := func(v value) value {
		k := plain(v)
		if _, missing := k.(*undefined); missing && p[1] != nil {
			return *p[1]
		}
		return k
	}
	key := r.folded(withDefault, p[2])
	out := &list{}
	var group *list
	var of value
	for _, it := range r.sorted(r.iterate(v), key, false) {
		k := key(it)
		if group == nil || !equal(k, of) {
			group, of = &list{}, k
			out.items = append(out.items, &tuple{items: []value{withDefault(it), group}, names: []string{"grouper", "list"}})
		}
		group.items = append(group.items, it)
	}
	return out
}

func unique(r *renderer, v value, a *arguments) value {
	p := r.bind("unique", a, "case_sensitive", "attribute")
	key := r.folded(r.attribute(p[1]), p[0])
	seen := map[string]bool{}
	out := &generator{}
	for _, it := range r.iterate(v) {
		r.step(1)
		h, ok := hashKey(key(it))
		if !ok {
			r.fail("unhashable type: '%s'", typeName(key(it)))
		}
		if !seen[h] {
			seen[h] = true
			out.items = append(out.items, it)
		}
	}
	return out
}

// extreme is min and max.
func extreme(op string) filterFunc {
	return func(r *renderer, v value, a *arguments) value {
		p := r.bind("min or max", a, "case_sensitive", "attribute")
		key := r.folded(r.attribute(p[1]), p[0])
		in := r.iterate(v)
		if len(in) == 0 {
			return undefinedf("No aggregated item, sequence was empty.")
		}
		best := in[0]
		for _, it := range in[1:] {
			if r.holds(op, key(it), key(best)) {
				best = it
			}
		}
		return best
	}
}

// sequence is what map and select go through: nothing for what is false.
func (r *renderer) sequence(v value) []value {
	if !truth(v) {
		return nil
	}
	return r.iterate(v)
}

// mapFilter is map(filter, …) and map(attribute=…, default=…).
func mapFilter(r *renderer, v value, a *arguments) value {
	out := &generator{}
	if len(a.positional) == 0 {
		p := r.bind("map", a, "", "attribute", "default")
		if p[1] == nil {
			r.fail("map requires a filter argument")
		}
		key := r.attribute(p[1])
		for _, it := range r.sequence(v) {
			r.step(1)
			x := key(it)
			if _, missing := x.(*undefined); missing && p[2] != nil {
				x = *p[2]
			}
			out.items = append(out.items, x)
		}
		return out
	}
	name := r.textArg(&a.positional[0], "").s
	f, ok := r.template.filters[name]
	if !ok {
		r.fail("no filter named %q", name)
	}
	rest := &arguments{a.positional[1:], a.names, a.named}
	for _, it := range r.sequence(v) {
		r.step(1)
		out.items = append(out.items, f(r, it, rest))
	}
	return out
}

// selecting is select, reject, selectattr and rejectattr.
func selecting(byAttr, keep bool) filterFunc {
	return func(r *renderer, v value, a *arguments) value {
		args := a.positional
		key := r.attribute(nil)
		if byAttr {
			if len(args) == 0 {
				r.fail("selectattr and rejectattr need an attribute")
			}
			key = r.attribute(&args[0])
			args = args[1:]
		}
		holds := func(v value) bool { return truth(v) }
		if len(args) > 0 {
			name := r.textArg(&args[0], "").s
			test, ok := r.template.tests[name]
			if !ok {
				r.fail("no test named %q", name)
			}
			rest := &arguments{args[1:], a.names, a.named}
			holds = func(v value) bool { return test(r, v, rest) }
		}
		out := &generator{}
		for _, it := range r.sequence(v) {
			r.step(1)
			if holds(key(it)) == keep {
				out.items = append(out.items, it)
			}
		}
		return out
	}
}

func join(r *renderer, v value, a *arguments) value {
	p := r.bind("join", a, "d", "attribute")
	key := r.attribute(p[1])
	in := r.iterate(v)
	parts := make([]value, len(in))
	for i, it := range in {
		r.step(1)
		parts[i] = key(it)
	}
	sep := text{}
	if p[0] != nil {
		sep = r.str(*p[0])
	}
	return r.joinTexts(sep, parts)
}
