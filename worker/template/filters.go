package template

import (
	"math"
	"strconv"
	"strings"
)

// filterFunc is a filter applied to v.
type filterFunc func(r *renderer, v value, a *arguments) value

// builtinFilters returns the filters that templates may use.
func builtinFilters() map[string]filterFunc {
	m := map[string]filterFunc{
		"abs": abs, "attr": attrFilter, "batch": batch, "default": defaultFilter, "d": defaultFilter,
		"dictsort": dictSort, "first": first, "float": toFloat, "format": formatFilter, "groupby": groupBy,
		"int": toInt, "items": items, "join": join, "last": last, "length": length, "count": length,
		"list": toList, "map": mapFilter, "max": extreme(">"), "min": extreme("<"), "reject": selecting(false, false),
		"rejectattr": selecting(true, false), "reverse": reverse, "round": round, "select": selecting(false, true),
		"selectattr": selecting(true, true), "slice": sliceFilter, "sort": sortFilter, "sum": sum, "tojson": tojson,
		"unique": unique,
	}
	addTextFilters(m)
	return m
}

func abs(r *renderer, v value, _ *arguments) value {
	i, f, isInt, ok := number(v)
	if !ok {
		r.checkDefined(v)
		r.fail("bad operand type for abs(): '%s'", typeName(v))
	}
	if isInt {
		return max(i, -i)
	}
	return math.Abs(f)
}

func attrFilter(r *renderer, v value, a *arguments) value {
	p := r.bind("attr", a, "name")
	return r.attr(v, r.textArg(p[0], "").s)
}

func defaultFilter(r *renderer, v value, a *arguments) value {
	p := r.bind("default", a, "default_value", "boolean")
	_, missing := v.(*undefined)
	if missing || p[1] != nil && truth(*p[1]) && !truth(v) {
		if p[0] == nil {
			return text{}
		}
		return *p[0]
	}
	return v
}

func first(r *renderer, v value, _ *arguments) value {
	if items := r.iterate(v); len(items) > 0 {
		return items[0]
	}
	return undefinedf("No first item, sequence was empty.")
}

func last(r *renderer, v value, _ *arguments) value {
	if items := r.iterate(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefinedf("No last item, sequence was empty.")
}

func length(r *renderer, v value, _ *arguments) value {
	switch v := v.(type) {
	case text:
		r.step(len(v.s) / 64)
		return int64(v.length())
	case *list:
		return int64(len(v.items))
	case *tuple:
		return int64(len(v.items))
	case *dict:
		return int64(v.len())
	case *loop:
		return int64(len(v.items))
	case *undefined:
		return int64(0)
	}
	r.fail("object of type '%s' has no len()", typeName(v))
	return nil
}

func toList(r *renderer, v value, _ *arguments) value {
	return &list{r.joinItems(r.iterate(v), nil)}
}

func items(r *renderer, v value, _ *arguments) value {
	switch v := v.(type) {
	case *undefined:
		return &generator{}
	case *dict:
		r.step(v.len())
		return &generator{v.items()}
	}
	r.fail("Can only get item pairs from a mapping.")
	return nil
}

func reverse(r *renderer, v value, _ *arguments) value {
	in := r.iterate(v)
	out := make([]value, len(in))
	r.step(len(in))
	for i, it := range in {
		out[len(in)-1-i] = it
	}
	if _, ok := v.(text); ok {
		return r.joinTexts(text{}, out)
	}
	return &generator{out}
}

func toInt(r *renderer, v value, a *arguments) value {
	p := r.bind("int", a, "default", "base")
	var absent value = int64(0)
	if p[0] != nil {
		absent = *p[0]
	}
	r.checkDefined(v)
	if t, ok := v.(text); ok {
		s := strings.ReplaceAll(strings.TrimFunc(t.s, isSpace), "_", "")
		base := int(r.intArg(p[1], 10))
		prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
		if i, err := strconv.ParseInt(strings.TrimPrefix(strings.ToLower(s), prefix), base, 64); err == nil {
			return i
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.Abs(f) >= 1<<63 {
			return absent
		}
		return int64(f)
	}
	i, f, isInt, ok := number(v)
	switch {
	case isInt:
		return i
	case ok && math.Abs(f) < 1<<63:
		return int64(f)
	}
	return absent
}

func toFloat(r *renderer, v value, a *arguments) value {
	p := r.bind("float", a, "default")
	var absent value = 0.0
	if p[0] != nil {
		absent = *p[0]
	}
	r.checkDefined(v)
	if t, ok := v.(text); ok {
		if f, err := strconv.ParseFloat(strings.TrimFunc(t.s, isSpace), 64); err == nil {
			return f
		}
		return absent
	}
	if _, f, _, ok := number(v); ok {
		return f
	}
	return absent
}

func round(r *renderer, v value, a *arguments) value {
	p := r.bind("round", a, "precision", "method")
	precision := int(min(max(r.intArg(p[0], 0), -300), 300))
	how := r.textArg(p[1], "common").s
	_, f, isInt, ok := number(v)
	if !ok {
		r.checkDefined(v)
		r.fail("round needs a number, not %s", typeName(v))
	}
	scale := math.Pow(10, float64(precision))
	switch how {
	case "common":
		if isInt && precision >= 0 {
			return v
		}
		if precision >= 0 {
			out, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
			return out
		}
		out := math.RoundToEven(f*scale) / scale
		if isInt {
			return int64(out)
		}
		return out
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	}
	r.fail("method must be common, ceil or floor")
	return nil
}

func sum(r *renderer, v value, a *arguments) value {
	p := r.bind("sum", a, "attribute", "start")
	var total value = int64(0)
	if p[1] != nil {
		total = *p[1]
	}
	key := r.attribute(p[0])
	for _, it := range r.iterate(v) {
		r.step(1)
		total = r.binary("+", total, key(it))
	}
	return total
}

func batch(r *renderer, v value, a *arguments) value {
	p := r.bind("batch", a, "linecount", "fill_with")
	n := int(r.intArg(p[0], 0))
	if n < 1 {
		r.fail("batch needs a line count of at least 1")
	}
	out := &generator{}
	in := r.iterate(v)
	r.step(len(in))
	for len(in) > 0 {
		part := append([]value(nil), in[:min(n, len(in))]...)
		in = in[len(part):]
		if p[1] != nil && *p[1] != nil {
			r.step(n - len(part))
			for len(part) < n {
				part = append(part, *p[1])
			}
		}
		out.items = append(out.items, &list{part})
	}
	return out
}

func sliceFilter(r *renderer, v value, a *arguments) value {
	p := r.bind("slice", a, "slices", "fill_with")
	n := int(r.intArg(p[0], 0))
	if n < 1 {
		r.fail("slice needs a number of slices of at least 1")
	}
	in := r.iterate(v)
	r.step(len(in) + n)
	per, more := len(in)/n, len(in)%n
	out := &generator{}
	at := 0
	for i := range n {
		take := per
		if i < more {
			take++
		}
		part := append([]value(nil), in[at:at+take]...)
		at += take
		if p[1] != nil && *p[1] != nil && i >= more {
			part = append(part, *p[1])
		}
		out.items = append(out.items, &list{part})
	}
	return out
}

func formatFilter(r *renderer, v value, a *arguments) value {
	if len(a.names) > 0 {
		return r.percent(r.str(v), r.newDictOf(&arguments{names: a.names, named: a.named}))
	}
	return r.percent(r.str(v), &tuple{items: a.positional})
}
