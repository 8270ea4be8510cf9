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
		case k == "additionalProperties" && (have == true || v == true):
			if have == true {
				out.vals[k] = v
			}
		default:
			failf("%s: %q is given twice with different values, which is not supported", path, k)
		}
	}
	return out
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

// checkDisjoint refuses a oneOf whose schemas a value could fit twice, as far
// as types and constant properties tell.
func (b *schemaBuilder) checkDisjoint(list []any, path string) {
	for i := range list {
		for j := range i {
			at := path + "/oneOf/" + strconv.Itoa(i)
			x, y := b.resolved(list[i], at, 0), b.resolved(list[j], at, 0)
			if !b.disjoint(x, y, at) {
				failf("%s/oneOf: a value may fit both schema %d and %d; give them different types or a constant property each, or use anyOf", path, j, i)
			}
		}
	}
}

func (b *schemaBuilder) disjoint(x, y *object, path string) bool {
	if vx, vy := values(x), values(y); vx != nil && vy != nil {
		return !slices.ContainsFunc(vx, func(v string) bool { return slices.Contains(vy, v) })
	}
	if tx, ty := kinds(x, path), kinds(y, path); tx != nil && ty != nil && !overlap(tx, ty) {
		return true
	}
	px, _ := x.vals["properties"].(*object)
	py, _ := y.vals["properties"].(*object)
	if px == nil || py == nil {
		return false
	}
	rx, ry := b.required(x, path), b.required(y, path)
	for _, name := range px.keys {
		sx, okX := px.vals[name].(*object)
		sy, okY := py.vals[name].(*object)
		if !okX || !okY || !slices.Contains(rx, name) || !slices.Contains(ry, name) {
			continue
		}
		if vx, vy := values(sx), values(sy); vx != nil && vy != nil && !slices.ContainsFunc(vx, func(v string) bool { return slices.Contains(vy, v) }) {
			return true
		}
	}
	return false
}

// values returns the values of const or enum as JSON, nil if there is
// neither.
func values(o *object) []string {
	list, _ := o.vals["enum"].([]any)
	if c, ok := o.vals["const"]; ok {
		list = []any{c}
	}
	var out []string
	for _, v := range list {
		out = append(out, string(appendJSON(nil, v, ":", ",")))
	}
	return out
}

// kinds returns the types that a schema's values can have, nil if unknown.
func kinds(o *object, path string) []string {
	if v := values(o); v != nil {
		var out []string
		for _, s := range v {
			var x any
			_ = json.Unmarshal([]byte(s), &x)
			switch x.(type) {
			case nil:
				out = append(out, "null")
			case bool:
				out = append(out, "boolean")
			case float64:
				out = append(out, "number")
			case string:
				out = append(out, "string")
			case []any:
				out = append(out, "array")
			default:
				out = append(out, "object")
			}
		}
		return out
	}
	if t := typesOf(o, path); t != nil {
		return t
	}
	return impliedTypes(o)
}

func overlap(a, b []string) bool {
	plain := func(t string) string {
		if t == "integer" {
			return "number"
		}
		return t
	}
	for _, x := range a {
		for _, y := range b {
			if plain(x) == plain(y) {
				return true
			}
		}
	}
	return false
}
