package grammar

import "slices"

// conditions is the key under which if, then and else of several schemas that
// are put together stand beside each other.
const conditions = " if"

// bundled puts if, then and else of a schema under that key.
func (b *schemaBuilder) bundled(o *object) *object {
	if _, ok := o.vals["if"]; !ok {
		return o
	}
	one := &object{vals: map[string]any{}}
	out := &object{vals: map[string]any{}}
	for _, k := range o.keys {
		if k == "if" || k == "then" || k == "else" {
			one.set(k, o.vals[k])
		} else {
			out.set(k, o.vals[k])
		}
	}
	out.set(conditions, append(slices.Clone(listOf0(o.vals[conditions])), one))
	return out
}

// listOf0 is listOf, and nothing for what is absent.
func listOf0(v any) []any {
	if v == nil {
		return nil
	}
	return listOf(v)
}

// conditional is a schema with if, whose condition is that a property has one
// of some values: either it has and then holds, or it has another and else
// does. A condition of another kind is not held to.
func (b *schemaBuilder) conditional(o *object, path string) (expr, bool) {
	o = b.bundled(o)
	list, ok := o.vals[conditions].([]any)
	if !ok {
		return nil, false
	}
	rest := o.without(conditions)
	if len(list) > 1 {
		rest.set(conditions, list[1:])
	}
	c, _ := list[0].(*object)
	name, met, unmet := b.condition(c, rest, path)
	if name == "" {
		return b.combined(rest, path), true
	}
	var alts altExpr
	for _, way := range []struct {
		property *object
		key      string
	}{{met, "then"}, {unmet, "else"}} {
		with := &object{keys: []string{"type", "properties", "required"}, vals: map[string]any{"type": "object", "required": []any{name},
			"properties": &object{keys: []string{name}, vals: map[string]any{name: way.property}}}}
		s := b.merge(rest, with, path)
		then := c.vals[way.key]
		if then == false || b.impossible(s, name, path) {
			continue
		}
		if then != nil && then != true {
			s = b.merge(s, b.resolved(then, path+"/"+way.key, 0), path+"/"+way.key)
		}
		alts = append(alts, b.combined(s, path))
	}
	if len(alts) == 0 {
		failf("%s: neither then nor else allows a value", path)
	}
	return alts, true
}

// impossible reports whether a property has values listed, and none is left.
func (b *schemaBuilder) impossible(o *object, name, path string) bool {
	props, _ := o.vals["properties"].(*object)
	p := b.resolved(props.vals[name], path, 0)
	list, ok := listed(p)
	return ok && !slices.ContainsFunc(list, func(v any) bool { return !b.excluded(p, v) })
}

// condition reads an if that asks one property for values; name is empty for
// another. met and unmet are the property's schemas.
func (b *schemaBuilder) condition(c, base *object, path string) (name string, met, unmet *object) {
	cond, ok := c.vals["if"].(*object)
	if !ok {
		return "", nil, nil
	}
	props, _ := cond.vals["properties"].(*object)
	for _, k := range cond.keys {
		if !slices.Contains([]string{"properties", "required", "type"}, k) && !slices.Contains(ignored, k) {
			return "", nil, nil
		}
	}
	if props == nil || len(props.keys) != 1 || slices.ContainsFunc(b.required(cond, path), func(r string) bool { return r != props.keys[0] }) {
		return "", nil, nil
	}
	name = props.keys[0]
	p, _ := props.vals[name].(*object)
	known, _ := base.vals["properties"].(*object)
	if p == nil || values(p) == nil || known == nil {
		return "", nil, nil
	}
	own, ok := known.vals[name].(*object)
	if !ok {
		return "", nil, nil
	}
	own = b.resolved(own, path, 0)
	if values(own) == nil && own.vals["type"] != "string" && own.vals["type"] != "boolean" {
		return "", nil, nil
	}
	if values(own) == nil && own.vals["type"] == "boolean" {
		return name, p, &object{keys: []string{"enum", "not"}, vals: map[string]any{"enum": []any{true, false}, "not": p}}
	}
	return name, p, &object{keys: []string{"not"}, vals: map[string]any{"not": p}}
}

// denials are the schemas of not, those of its anyOf each.
func (b *schemaBuilder) denials(o *object, path string) []*object {
	v, ok := o.vals["not"]
	if !ok {
		return nil
	}
	n, ok := v.(*object)
	if !ok {
		return nil
	}
	n = b.resolved(n, path+"/not", 0)
	list, several := n.vals["anyOf"].([]any)
	if !several || len(n.without("anyOf").keys) > 0 {
		return []*object{n}
	}
	var out []*object
	for _, s := range list {
		if x, ok := s.(*object); ok {
			out = append(out, b.denials(&object{vals: map[string]any{"not": x}}, path)...)
		}
	}
	return out
}

// never reports whether a schema allows nothing, as false does: zod writes so
// what must be absent.
func (b *schemaBuilder) never(s any) bool {
	o, ok := s.(*object)
	if !ok {
		return s == false
	}
	if o.vals["not"] == true {
		return true
	}
	return slices.ContainsFunc(b.denials(o, "#"), func(n *object) bool { return len(n.without().keys) == 0 })
}

// excluded reports whether not leaves a value out, as far as it is given by
// values or types.
func (b *schemaBuilder) excluded(o *object, v any) bool {
	for _, n := range b.denials(o, "#") {
		types := typesOf(n, "#/not")
		listed := values(n)
		if len(n.without("type", "const", "enum").keys) > 0 {
			continue
		}
		fits := len(types) == 0 || slices.ContainsFunc(types, func(t string) bool { return hasType(v, t) })
		if fits && (listed == nil || slices.Contains(listed, string(appendJSON(nil, v, ":", ",")))) {
			return true
		}
	}
	return false
}

// allowedTypes is the types that not leaves.
func (b *schemaBuilder) allowedTypes(o *object, types []string, path string) []string {
	for _, n := range b.denials(o, path) {
		denied := typesOf(n, path+"/not")
		if denied == nil || len(n.without("type").keys) > 0 {
			continue
		}
		if types == nil {
			types = []string{"string", "number", "boolean", "null", "array", "object"}
		}
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool {
			return slices.Contains(denied, t) || t == "integer" && slices.Contains(denied, "number")
		})
		if len(types) == 0 {
			failf("%s: not leaves no type", path)
		}
	}
	return types
}

// deniedStrings are the strings that not leaves out.
func (b *schemaBuilder) deniedStrings(o *object, path string) []*language {
	var out []*language
	for _, n := range b.denials(o, path) {
		if types := typesOf(n, path+"/not"); types != nil && !slices.Contains(types, "string") {
			continue
		}
		rest := n.without("type", "const", "enum", "pattern", "minLength", "maxLength")
		source, has := n.vals["pattern"].(string)
		listed, _ := n.vals["enum"].([]any)
		if c, ok := n.vals["const"]; ok {
			listed = []any{c}
		}
		least, most := count(n, "minLength", 0, path), count(n, "maxLength", -1, path)
		switch {
		case len(rest.keys) > 0:
		case listed != nil:
			var names []string
			for _, v := range listed {
				if s, ok := v.(string); ok {
					names = append(names, s)
				}
			}
			if len(names) > 0 {
				out = append(out, texts(b.p, names, path+"/not"))
			}
		case has || least > 0 || most >= 0:
			out = append(out, b.stringLanguage(source, has, least, most, path+"/not"))
		}
	}
	return out
}
