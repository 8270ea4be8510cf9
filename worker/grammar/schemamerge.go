package grammar

import (
	"encoding/json"
	"slices"
	"strconv"
)

// merged returns a schema with its allOf taken into it.
func (b *schemaBuilder) merged(o *object, path string) *object {
	list, ok := o.vals["allOf"].([]any)
	if !ok || len(list) == 0 {
		failf("%s/allOf is not a list with schemas", path)
	}
	out := &object{vals: map[string]any{}}
	for _, k := range o.keys {
		if k != "allOf" {
			out.keys = append(out.keys, k)
			out.vals[k] = o.vals[k]
		}
	}
	for i, s := range list {
		at := path + "/allOf/" + strconv.Itoa(i)
		other := b.resolved(s, at, 0)
		if _, ok := other.vals["allOf"]; ok {
			other = b.merged(other, at)
		}
		checkKeywords(other, at)
		out = b.merge(out, other, at)
	}
	return out
}

// merge returns the schema of what fits both. It takes what can be put side
// by side, and refuses what would have to be intersected.
func (b *schemaBuilder) merge(a, c *object, path string) *object {
	b.p.spend(len(a.keys) + len(c.keys))
	out := &object{keys: slices.Clone(a.keys), vals: map[string]any{}}
	for _, k := range a.keys {
		out.vals[k] = a.vals[k]
	}
	out, c = b.bundled(out), b.bundled(c)
	for _, k := range c.keys {
		v := c.vals[k]
		have, both := out.vals[k]
		switch {
		case !both:
			out.keys = append(out.keys, k)
			out.vals[k] = v
		case slices.Contains(ignored, k) || sameJSON(have, v):
		case k == "properties":
			x, okX := have.(*object)
			y, okY := v.(*object)
			if !okX || !okY {
				failf("%s/properties is not an object", path)
			}
			out.vals[k] = b.mergeProperties(x, y, path)
		case k == "required":
			x, _ := have.([]any)
			y, _ := v.([]any)
			out.vals[k] = append(slices.Clone(x), y...)
		default:
			out.vals[k] = b.mergeKey(k, have, v, path)
		}
	}
	return out
}

// mergeKey is what fits two values of one keyword.
func (b *schemaBuilder) mergeKey(k string, x, y any, path string) any {
	m, okX := x.(json.Number)
	n, okY := y.(json.Number)
	switch {
	case slices.Contains([]string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}, k) && okX && okY:
		if less(m, n) {
			return y
		}
		return x
	case slices.Contains([]string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}, k) && okX && okY:
		if less(n, m) {
			return y
		}
		return x
	case k == "type" || k == "enum":
		return common(k, listOf(x), listOf(y), path)
	case k == conditions:
		return append(slices.Clone(listOf(x)), listOf(y)...)
	case slices.Contains([]string{"items", "additionalProperties", "propertyNames"}, k):
		if x == false || y == false {
			return false
		}
		return b.merge(b.resolved(x, path+"/"+k, 0), b.resolved(y, path+"/"+k, 0), path+"/"+k)
	case k == "not":
		return &object{keys: []string{"anyOf"}, vals: map[string]any{"anyOf": []any{x, y}}}
	case k == "uniqueItems":
		return true
	}
	failf("%s: %q is given twice with different values, which is not supported", path, k)
	return nil
}

// listOf is a value that may stand alone or in a list.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// common is what two lists of types or values share.
func common(k string, x, y []any, path string) any {
	var out []any
	for _, v := range x {
		for _, w := range y {
			switch {
			case sameJSON(v, w), k == "type" && v == "integer" && w == "number":
				out = append(out, v)
			case k == "type" && v == "number" && w == "integer":
				out = append(out, w)
			}
		}
	}
	if len(out) == 0 {
		failf("%s: no %s fits both %s and %s", path, k, appendJSON(nil, x, ":", ","), appendJSON(nil, y, ":", ","))
	}
	return out
}

func less(x, y json.Number) bool {
	a, errA := x.Float64()
	c, errC := y.Float64()
	return errA == nil && errC == nil && a < c
}

func (b *schemaBuilder) mergeProperties(x, y *object, path string) *object {
	out := &object{keys: slices.Clone(x.keys), vals: map[string]any{}}
	for _, k := range x.keys {
		out.vals[k] = x.vals[k]
	}
	for _, k := range y.keys {
		have, both := out.vals[k]
		if !both {
			out.keys = append(out.keys, k)
			out.vals[k] = y.vals[k]
			continue
		}
		if !sameJSON(have, y.vals[k]) {
			at := path + "/properties/" + k
			out.vals[k] = b.merge(b.resolved(have, at, 0), b.resolved(y.vals[k], at, 0), at)
		}
	}
	return out
}

func sameJSON(a, b any) bool {
	return string(appendJSON(nil, a, ":", ",")) == string(appendJSON(nil, b, ":", ","))
}

// listed returns the values of const or enum, and whether there is either.
func listed(o *object) ([]any, bool) {
	list, ok := o.vals["enum"].([]any)
	c, one := o.vals["const"]
	switch {
	case one && ok && !slices.ContainsFunc(list, func(v any) bool { return sameJSON(v, c) }):
		return nil, true
	case one:
		return []any{c}, true
	}
	return list, ok
}

// values returns the values of const or enum as JSON, nil if there is
// neither.
func values(o *object) []string {
	list, ok := listed(o)
	if !ok {
		return nil
	}
	out := []string{}
	for _, v := range list {
		out = append(out, string(appendJSON(nil, v, ":", ",")))
	}
	return out
}
