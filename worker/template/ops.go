package template

import (
	"math"
	"math/bits"
	"strings"
)

func (x *negExpr) eval(r *renderer, e *scope) value {
	v := x.x.eval(r, e)
	i, f, isInt, ok := number(v)
	if !ok {
		r.checkDefined(v)
		r.fail("bad operand type for unary -: '%s'", typeName(v))
	}
	switch {
	case isInt && x.plus:
		return i
	case isInt:
		return -i
	case x.plus:
		return f
	}
	return -f
}

func (x *binaryExpr) eval(r *renderer, e *scope) value {
	r.step(1)
	a := x.a.eval(r, e)
	b := x.b.eval(r, e)
	r.line = x.line
	return r.binary(x.op, a, b)
}

// binary is Python's a op b.
func (r *renderer) binary(op string, a, b value) value {
	ai, af, aInt, aNum := number(a)
	bi, bf, bInt, bNum := number(b)
	if aNum && bNum {
		if aInt && bInt && op != "/" && !(op == "**" && bi < 0) {
			return r.intOp(op, ai, bi)
		}
		return r.floatOp(op, af, bf)
	}
	switch op {
	case "+":
		if v := r.join(a, b); v != nil {
			return v
		}
	case "*":
		if bNum && bInt {
			if v := r.repeat(a, bi); v != nil {
				return v
			}
		}
		if aNum && aInt {
			if v := r.repeat(b, ai); v != nil {
				return v
			}
		}
	case "%":
		if t, ok := a.(text); ok {
			return r.percent(t, b)
		}
	}
	r.checkDefined(a)
	r.checkDefined(b)
	r.fail("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
	return nil
}

// join is + of strings, lists and tuples; nil for anything else.
func (r *renderer) join(a, b value) value {
	switch a := a.(type) {
	case text:
		if b, ok := b.(text); ok {
			r.made(len(a.s) + len(b.s))
			return concat(a, b)
		}
	case *list:
		if b, ok := b.(*list); ok {
			return &list{r.joinItems(a.items, b.items)}
		}
	case *tuple:
		if b, ok := b.(*tuple); ok {
			return &tuple{items: r.joinItems(a.items, b.items)}
		}
	}
	return nil
}

func (r *renderer) joinItems(a, b []value) []value {
	r.step(len(a) + len(b))
	return append(append(make([]value, 0, len(a)+len(b)), a...), b...)
}

// repeat is * of a string, list or tuple; nil for anything else.
func (r *renderer) repeat(v value, n int64) value {
	n = max(n, 0)
	times := func(length int) int {
		hi, total := bits.Mul64(uint64(length), uint64(n))
		if hi != 0 || total > math.MaxInt32 {
			total = math.MaxInt32
		}
		return int(total)
	}
	items := func(in []value) []value {
		r.step(times(len(in)))
		var out []value
		for range n {
			if len(in) == 0 {
				break
			}
			out = append(out, in...)
		}
		return out
	}
	switch v := v.(type) {
	case text:
		r.made(times(len(v.s)))
		if len(v.content) == 0 {
			return literal(strings.Repeat(v.s, int(n)*min(len(v.s), 1)))
		}
		var b builder
		for range n {
			b.add(v)
		}
		return b.text()
	case *list:
		return &list{items(v.items)}
	case *tuple:
		return &tuple{items: items(v.items)}
	}
	return nil
}

func (r *renderer) intOp(op string, a, b int64) value {
	overflow := func(bad bool) {
		if bad {
			r.fail("the result of %d %s %d is outside the range of 64 bits", a, op, b)
		}
	}
	switch op {
	case "+":
		c := a + b
		overflow((c > a) != (b > 0) && b != 0)
		return c
	case "-":
		c := a - b
		overflow((c < a) != (b > 0) && b != 0)
		return c
	case "*":
		c := a * b
		overflow(a != 0 && (c/a != b || a == -1 && b == math.MinInt64))
		return c
	case "//", "%":
		if b == 0 {
			r.fail("integer division or modulo by zero")
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if op == "%" {
			return m
		}
		return q
	}
	switch {
	case a == 0 && b > 0:
		return int64(0)
	case a == 1 || a == -1 && b%2 == 0:
		return int64(1)
	case a == -1:
		return int64(-1)
	}
	result := int64(1)
	for range b { // ends after 63 rounds, since a is at least 2 in size
		c := result * a
		overflow(c/a != result)
		result = c
	}
	return result
}

func (r *renderer) floatOp(op string, a, b float64) value {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		return math.Pow(a, b)
	}
	if b == 0 {
		r.fail("division by zero")
	}
	if op == "/" {
		return a / b
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	if op == "%" {
		return m
	}
	return math.Floor((a - m) / b)
}
