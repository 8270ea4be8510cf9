package template

// testFunc is a test, as in "x is defined".
type testFunc func(r *renderer, v value, a *arguments) bool

// builtinTests returns the tests that templates may use.
func builtinTests() map[string]testFunc {
	m := map[string]testFunc{
		"boolean":  is(func(v value) bool { _, ok := v.(bool); return ok }),
		"callable": is(isCallable),
		"defined":  is(func(v value) bool { _, ok := v.(*undefined); return !ok }),
		"false":    is(func(v value) bool { return v == false }),
		"float":    is(func(v value) bool { _, ok := v.(float64); return ok }),
		"integer":  is(func(v value) bool { _, ok := v.(int64); return ok }),
		"iterable": is(isIterable),
		"mapping":  is(func(v value) bool { _, ok := v.(*dict); return ok }),
		"none":     is(func(v value) bool { return v == nil }),
		"number":   is(func(v value) bool { _, _, _, ok := number(v); return ok }),
		"sequence": is(isSequence),
		"string":   is(func(v value) bool { _, ok := v.(text); return ok }),
		"true":     is(func(v value) bool { return v == true }),
		"undefined": is(func(v value) bool {
			_, ok := v.(*undefined)
			return ok
		}),
		"lower": func(r *renderer, v value, _ *arguments) bool { return textIs("islower")(r.str(v).s) },
		"upper": func(r *renderer, v value, _ *arguments) bool { return textIs("isupper")(r.str(v).s) },
		"even":  func(r *renderer, v value, _ *arguments) bool { return r.modulo(v, 2) == 0 },
		"odd":   func(r *renderer, v value, _ *arguments) bool { return r.modulo(v, 2) == 1 },
		"divisibleby": func(r *renderer, v value, a *arguments) bool {
			return r.modulo(v, r.intArg(&r.operand(a)[0], 1)) == 0
		},
		"in":     func(r *renderer, v value, a *arguments) bool { return r.contains(r.operand(a)[0], v) },
		"sameas": func(r *renderer, v value, a *arguments) bool { return same(v, r.operand(a)[0]) },
	}
	m["filter"] = func(r *renderer, v value, _ *arguments) bool {
		_, ok := r.template.filters[r.str(v).s]
		return ok
	}
	m["test"] = func(r *renderer, v value, _ *arguments) bool {
		_, ok := r.template.tests[r.str(v).s]
		return ok
	}
	for op, names := range map[string][]string{
		"==": {"eq", "equalto"}, "!=": {"ne"}, "<": {"lt", "lessthan"}, "<=": {"le"}, ">": {"gt", "greaterthan"}, ">=": {"ge"},
	} {
		f := func(r *renderer, v value, a *arguments) bool { return r.holds(op, v, r.operand(a)[0]) }
		for _, n := range names {
			m[n] = f
		}
		m[op] = f
	}
	return m
}

func is(f func(value) bool) testFunc {
	return func(_ *renderer, v value, _ *arguments) bool { return f(v) }
}

// operand returns the one argument of a test.
func (r *renderer) operand(a *arguments) []value {
	if len(a.positional) != 1 || len(a.names) > 0 {
		r.fail("the test takes one argument; %d were given", len(a.positional)+len(a.names))
	}
	return a.positional
}

func (r *renderer) modulo(v value, by int64) int64 {
	m, _, _, ok := number(r.binary("%", v, by))
	if !ok {
		r.fail("the test needs a number, not %s", typeName(v))
	}
	return m
}

func isCallable(v value) bool {
	switch v.(type) {
	case *function, *macro, *loop:
		return true
	}
	return false
}

func isIterable(v value) bool {
	switch v.(type) {
	case text, *list, *tuple, *generator, *dict, *undefined, *loop:
		return true
	}
	return false
}

func isSequence(v value) bool {
	switch v.(type) {
	case text, *list, *tuple, *dict, *undefined:
		return true
	}
	return false
}

// same is Python's "is". Equal small values are one object there.
func same(a, b value) bool {
	switch a.(type) {
	case nil, bool, int64:
		return a == b
	case text:
		return equal(a, b)
	}
	switch b.(type) {
	case float64, text:
		return false
	}
	if _, ok := a.(float64); ok {
		return false
	}
	return a == b
}
