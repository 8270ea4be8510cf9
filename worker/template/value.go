package template

import (
	"math"
	"math/big"
)

// value is what an expression gives: nil (None), bool, int64, float64, text,
// *list, *tuple, *generator, *dict, *namespace, *undefined, *loop, or a
// function (*macro, *function).
type value any

// undefined is the value of a name or attribute that does not exist. It
// prints as nothing and is false; what needs a value fails with its reason.
type undefined struct{ reason string }

// list is a Python list.
type list struct{ items []value }

// tuple is a Python tuple.
type tuple struct {
	items []value
	names []string // of the fields, if they have any
}

// generator is what map, select and their like return: it can be gone
// through, but has no length.
type generator struct{ items []value }

// namespace is the value of namespace(): the only thing a template can
// change.
type namespace struct{ fields *dict }

// function is a function of the engine, a method included.
type function struct {
	name string
	call func(r *renderer, a *arguments) value
}

// typeName returns Python's name of a value's type, for errors.
func typeName(v value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case text:
		return "str"
	case *list:
		return "list"
	case *tuple:
		return "tuple"
	case *generator:
		return "generator"
	case *dict:
		return "dict"
	case *namespace:
		return "Namespace"
	case *undefined:
		return "Undefined"
	case *loop:
		return "LoopContext"
	case *macro:
		return "Macro"
	case *function:
		return "function " + v.name
	case *cycler:
		return "Cycler"
	}
	return "object"
}

// truth reports whether Python takes v for true.
func truth(v value) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case text:
		return v.s != ""
	case *list:
		return len(v.items) > 0
	case *tuple:
		return len(v.items) > 0
	case *dict:
		return v.len() > 0
	}
	return true
}

// number returns v as an int or a float; a bool counts as an int.
func number(v value) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}

// equal is Python's ==.
func equal(a, b value) bool {
	if ai, af, aInt, ok := number(a); ok {
		bi, bf, bInt, ok := number(b)
		if !ok {
			return false
		}
		if aInt && bInt {
			return ai == bi
		}
		return compareNumbers(ai, af, aInt, bi, bf, bInt) == 0
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case text:
		b, ok := b.(text)
		return ok && a.s == b.s
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *list:
		b, ok := b.(*list)
		return ok && equalItems(a.items, b.items)
	case *tuple:
		b, ok := b.(*tuple)
		return ok && equalItems(a.items, b.items)
	case *dict:
		b, ok := b.(*dict)
		return ok && a.equal(b)
	}
	return a == b
}

func equalItems(a, b []value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// compareNumbers compares without rounding a large int; NaN is unequal to
// and not less than anything, which the result 2 stands for.
func compareNumbers(ai int64, af float64, aInt bool, bi int64, bf float64, bInt bool) int {
	if aInt && bInt {
		switch {
		case ai < bi:
			return -1
		case ai > bi:
			return 1
		}
		return 0
	}
	if math.IsNaN(af) || math.IsNaN(bf) {
		return 2
	}
	exact := func(i int64, f float64, isInt bool) *big.Float {
		if isInt {
			return new(big.Float).SetInt64(i)
		}
		return big.NewFloat(f)
	}
	return exact(ai, af, aInt).Cmp(exact(bi, bf, bInt))
}

// compare is Python's <=> for what can be ordered: -1, 0, 1, or 2 for NaN.
func (r *renderer) compare(op string, a, b value) int {
	r.step(1)
	if ai, af, aInt, ok := number(a); ok {
		if bi, bf, bInt, ok := number(b); ok {
			return compareNumbers(ai, af, aInt, bi, bf, bInt)
		}
	}
	switch x := a.(type) {
	case text:
		if y, ok := b.(text); ok {
			switch {
			case x.s < y.s:
				return -1
			case x.s > y.s:
				return 1
			}
			return 0
		}
	case *list:
		if y, ok := b.(*list); ok {
			return r.compareItems(op, x.items, y.items)
		}
	case *tuple:
		if y, ok := b.(*tuple); ok {
			return r.compareItems(op, x.items, y.items)
		}
	}
	r.checkDefined(a)
	r.checkDefined(b)
	r.fail("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	return 0
}

func (r *renderer) compareItems(op string, a, b []value) int {
	for i := range min(len(a), len(b)) {
		if !equal(a[i], b[i]) {
			return r.compare(op, a[i], b[i])
		}
	}
	return r.compare(op, int64(len(a)), int64(len(b)))
}
