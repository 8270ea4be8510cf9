package template

import "strings"

// attr is x.name: a method or field of the value, else what is stored under
// the name.
func (r *renderer) attr(v value, name string) value {
	r.checkDefined(v)
	if strings.HasPrefix(name, "__") {
		return undefinedf("access to attribute '%s' of '%s' object is unsafe.", name, typeName(v))
	}
	switch v := v.(type) {
	case *namespace:
		if x, ok := v.fields.getName(name); ok {
			return x
		}
	case *loop:
		return v.attr(name)
	case *cycler:
		return v.attr(name)
	case *macro:
		if name == "name" {
			return literal(v.def.name)
		}
	case text:
		if f := textMethod(v, name); f != nil {
			return f
		}
	case *list:
		if f := r.itemsMethod(v.items, name); f != nil {
			return f
		}
	case *tuple:
		for i, n := range v.names {
			if n == name {
				return v.items[i]
			}
		}
		if f := r.itemsMethod(v.items, name); f != nil {
			return f
		}
	case *dict:
		if f := r.dictMethod(v, name); f != nil {
			return f
		}
		if x, ok := v.getName(name); ok {
			return x
		}
		return undefinedf("'dict object' has no attribute '%s'", name)
	}
	return undefinedf("'%s object' has no attribute '%s'", typeName(v), name)
}

// item is v[key].
func (r *renderer) item(v, key value) value {
	r.checkDefined(v)
	i, _, isInt, isNum := number(key)
	switch x := v.(type) {
	case *dict:
		if val, ok := x.get(key); ok {
			return val
		}
	case *list:
		if isNum && isInt {
			return at(x.items, i, "list")
		}
	case *tuple:
		if isNum && isInt {
			return at(x.items, i, "tuple")
		}
	case text:
		if isNum && isInt {
			r.step(len(x.s) / 64)
			n := int64(x.length())
			if i < 0 {
				i += n
			}
			if i < 0 || i >= n {
				return undefinedf("'str object' has no element %d", i)
			}
			from := x.offset(int(i))
			to := from + x.slice(from, len(x.s)).offset(1)
			return x.slice(from, to)
		}
	}
	name, ok := key.(text)
	if !ok {
		return undefinedf("'%s object' has no element %s", typeName(v), r.repr(key).s)
	}
	if _, isDict := v.(*dict); isDict {
		if f := r.dictMethod(v.(*dict), name.s); f != nil {
			return f
		}
		return undefinedf("'dict object' has no attribute '%s'", name.s)
	}
	return r.attr(v, name.s)
}

func at(items []value, i int64, kind string) value {
	n := int64(len(items))
	j := i
	if j < 0 {
		j += n
	}
	if j < 0 || j >= n {
		return undefinedf("'%s object' has no element %d", kind, i)
	}
	return items[j]
}

func (x *sliceExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	v := x.x.eval(r, e)
	bounds := [3]*int64{}
	for i, part := range []expr{x.from, x.to, x.step} {
		if part == nil {
			continue
		}
		p := part.eval(r, e)
		if p == nil {
			continue
		}
		n, _, isInt, ok := number(p)
		if !ok || !isInt {
			r.fail("slice indices must be integers or None")
		}
		bounds[i] = &n
	}
	switch v := v.(type) {
	case *list:
		return &list{r.sliceItems(v.items, bounds)}
	case *tuple:
		return &tuple{items: r.sliceItems(v.items, bounds)}
	case text:
		return r.sliceText(v, bounds)
	case *undefined:
		r.checkDefined(v)
	}
	r.fail("'%s' object is not subscriptable", typeName(v))
	return nil
}

// indices returns which of n items a slice takes: from, by step, count times.
func (r *renderer) indices(n int64, b [3]*int64) (from, step, count int64) {
	step = 1
	if b[2] != nil {
		step = *b[2]
	}
	if step == 0 {
		r.fail("slice step cannot be zero")
	}
	low, high := int64(0), n
	if step < 0 {
		low, high = -1, n-1
	}
	bound := func(p *int64, absent int64) int64 {
		if p == nil {
			return absent
		}
		i := *p
		if i < 0 {
			return max(i+n, low)
		}
		return min(i, high)
	}
	var to int64
	if step > 0 {
		from, to = bound(b[0], low), bound(b[1], high)
		if to > from {
			count = (to-from-1)/step + 1
		}
		return from, step, count
	}
	from, to = bound(b[0], high), bound(b[1], low)
	if from > to {
		count = (from-to-1)/-step + 1
	}
	return from, step, count
}

func (r *renderer) sliceItems(items []value, b [3]*int64) []value {
	from, step, count := r.indices(int64(len(items)), b)
	r.step(int(count))
	out := make([]value, 0, count)
	for range count {
		out = append(out, items[from])
		from += step
	}
	return out
}

func (r *renderer) sliceText(t text, b [3]*int64) value {
	r.made(len(t.s))
	from, step, count := r.indices(int64(t.length()), b)
	if count == 0 {
		return text{}
	}
	if step == 1 {
		lo := t.offset(int(from))
		rest := t.slice(lo, len(t.s))
		return rest.slice(0, rest.offset(int(count)))
	}
	chars := r.iterate(t)
	var out builder
	for range count {
		out.add(chars[from].(text))
		from += step
	}
	return out.text()
}
