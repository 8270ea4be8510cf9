package template

import "strings"

// arguments are the values of a call's arguments.
type arguments struct {
	positional []value
	names      []string
	named      []value
}

func (r *renderer) arguments(x argExprs, e *scope) *arguments {
	a := &arguments{}
	for _, p := range x.positional {
		a.positional = append(a.positional, p.eval(r, e))
	}
	if x.spread != nil {
		a.positional = append(a.positional, r.iterate(x.spread.eval(r, e))...)
	}
	for i, p := range x.named {
		a.names = append(a.names, x.names[i])
		a.named = append(a.named, p.eval(r, e))
	}
	if x.spreadDict != nil {
		d, ok := x.spreadDict.eval(r, e).(*dict)
		if !ok {
			r.fail("what follows ** must be a dict")
		}
		for _, it := range d.entries {
			k, ok := it.key.(text)
			if !ok {
				r.fail("keywords must be strings")
			}
			a.names = append(a.names, k.s)
			a.named = append(a.named, it.val)
		}
	}
	return a
}

// bind gives the arguments of a function their places. Those not given are
// nil pointers.
func (r *renderer) bind(name string, a *arguments, params ...string) []*value {
	out := make([]*value, len(params))
	if len(a.positional) > len(params) {
		r.fail("%s takes at most %d arguments; %d were given", name, len(params), len(a.positional))
	}
	for i := range a.positional {
		out[i] = &a.positional[i]
	}
	for i, n := range a.names {
		at := -1
		for j, p := range params {
			if p == n {
				at = j
			}
		}
		if at < 0 || out[at] != nil {
			r.fail("%s: unexpected argument '%s'", name, n)
		}
		out[at] = &a.named[i]
	}
	return out
}

func (x *constExpr) eval(*renderer, *scope) value { return x.v }

func (x *nameExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	if v, ok := e.lookup(x.name); ok {
		return v
	}
	if f := global(x.name); f != nil {
		return f
	}
	return undefinedf("'%s' is undefined", x.name)
}

func (r *renderer) evalAll(items []expr, e *scope) []value {
	out := make([]value, len(items))
	for i, it := range items {
		r.step(1)
		out[i] = it.eval(r, e)
	}
	return out
}

func (x *listExpr) eval(r *renderer, e *scope) value  { return &list{r.evalAll(x.items, e)} }
func (x *tupleExpr) eval(r *renderer, e *scope) value { return &tuple{items: r.evalAll(x.items, e)} }

func (x *dictExpr) eval(r *renderer, e *scope) value {
	d := newDict()
	for i, k := range x.keys {
		r.step(1)
		key := k.eval(r, e)
		if !d.set(key, x.vals[i].eval(r, e)) {
			r.fail("unhashable type: '%s'", typeName(key))
		}
	}
	return d
}

func (x *attrExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	return r.attr(x.x.eval(r, e), x.name)
}

func (x *indexExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	v := x.x.eval(r, e)
	return r.item(v, x.key.eval(r, e))
}

func (x *callExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	fn := x.fn.eval(r, e)
	args := r.arguments(x.args, e)
	r.line = x.line
	return r.invoke(fn, args)
}

// invoke calls a value.
func (r *renderer) invoke(fn value, a *arguments) value {
	switch fn := fn.(type) {
	case *function:
		return fn.call(r, a)
	case *macro:
		return fn.run(r, a)
	case *loop:
		p := r.bind("loop", a, "iterable")
		if p[0] == nil {
			r.fail("loop needs what to go through")
		}
		return fn.again(r, *p[0])
	}
	r.checkDefined(fn)
	r.fail("'%s' object is not callable", typeName(fn))
	return nil
}

func (x *filterExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	v := x.x.eval(r, e)
	args := r.arguments(x.args, e)
	r.line = x.line
	return x.run(r, v, args)
}

func (x *testExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	v := x.x.eval(r, e)
	args := r.arguments(x.args, e)
	r.line = x.line
	return x.run(r, v, args) != x.not
}

func (x *condExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	if truth(x.test.eval(r, e)) {
		return x.a.eval(r, e)
	}
	if x.b == nil {
		return undefinedf("the inline if-expression evaluated to false and no else section was defined.")
	}
	return x.b.eval(r, e)
}

func (x *andExpr) eval(r *renderer, e *scope) value {
	if a := x.a.eval(r, e); !truth(a) {
		return a
	}
	return x.b.eval(r, e)
}

func (x *orExpr) eval(r *renderer, e *scope) value {
	if a := x.a.eval(r, e); truth(a) {
		return a
	}
	return x.b.eval(r, e)
}

func (x *notExpr) eval(r *renderer, e *scope) value { return !truth(x.x.eval(r, e)) }

func (x *concatExpr) eval(r *renderer, e *scope) value {
	parts := make([]text, len(x.items))
	n := 0
	for i, it := range x.items {
		parts[i] = r.str(it.eval(r, e))
		parts[i].html = false // unlike +, it joins as it is
		n += len(parts[i].s)
	}
	r.made(n)
	return concat(parts...)
}

func (x *compareExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	left := x.x.eval(r, e)
	for i, op := range x.ops {
		right := x.rest[i].eval(r, e)
		r.line = x.line
		if !r.holds(op, left, right) {
			return false
		}
		left = right
	}
	return true
}

// holds reports whether a comparison is true.
func (r *renderer) holds(op string, a, b value) bool {
	switch op {
	case "==":
		r.comparing(a, b)
		return equal(a, b)
	case "!=":
		r.comparing(a, b)
		return !equal(a, b)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	}
	c := r.compare(op, a, b)
	switch op {
	case "<":
		return c == -1
	case "<=":
		return c == -1 || c == 0
	case ">":
		return c == 1
	}
	return c == 0 || c == 1
}

// comparing counts the work of comparing two large values.
func (r *renderer) comparing(a, b value) { r.step(min(size(a), size(b)) / 16) }

// size is roughly how large a value is.
func size(v value) int {
	switch v := v.(type) {
	case text:
		return len(v.s)
	case *list:
		return 16 * len(v.items)
	case *tuple:
		return 16 * len(v.items)
	case *dict:
		return 16 * v.len()
	}
	return 1
}

// contains is Python's "item in container".
func (r *renderer) contains(container, item value) bool {
	switch c := container.(type) {
	case text:
		t, ok := item.(text)
		if !ok {
			r.checkDefined(item)
			r.fail("'in <string>' requires string as left operand, not %s", typeName(item))
		}
		r.step(len(c.s) / 64)
		return strings.Contains(c.s, t.s)
	case *dict:
		_, ok := c.get(item)
		return ok
	}
	for _, it := range r.iterate(container) {
		r.step(1)
		if equal(it, item) {
			return true
		}
	}
	return false
}
