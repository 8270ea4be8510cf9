package grammar

import (
	"regexp"
	"slices"
	"strconv"
)

// nameMembers makes properties of the names that propertyNames lists: so none
// comes twice.
func (b *schemaBuilder) nameMembers(at **object, path string) {
	o := *at
	names, ok := o.vals["propertyNames"]
	if !ok || names == true {
		return
	}
	if names == false {
		names = &object{keys: []string{"enum"}, vals: map[string]any{"enum": []any{}}}
	}
	n := b.resolved(names, path+"/propertyNames", 0)
	list, listed := n.vals["enum"].([]any)
	if c, ok := n.vals["const"]; ok {
		list, listed = []any{c}, true
	}
	if !listed {
		return
	}
	out := o.without("propertyNames", "additionalProperties", "patternProperties")
	have, _ := o.vals["properties"].(*object)
	props := &object{vals: map[string]any{}}
	for _, v := range list {
		name, ok := v.(string)
		if !ok {
			continue
		}
		schema := b.otherValue(o, name, path)
		if have != nil && have.vals[name] != nil {
			schema = have.vals[name]
		}
		props.set(name, schema)
	}
	out.set("properties", props)
	out.set("additionalProperties", false)
	*at = out
}

// patterns are the keys of patternProperties.
func (b *schemaBuilder) patterns(o *object, path string) (*object, []*regexp.Regexp) {
	list, ok := o.vals["patternProperties"].(*object)
	if !ok {
		return &object{}, nil
	}
	var out []*regexp.Regexp
	for _, k := range list.keys {
		re, err := regexp.Compile(goPattern(k))
		if err != nil {
			failf("%s/patternProperties: %w", path, err)
		}
		out = append(out, re)
	}
	return list, out
}

// patterned is a property's schema with those of the patterns that its name
// meets.
func (b *schemaBuilder) patterned(o *object, name string, schema any, path string) any {
	list, res := b.patterns(o, path)
	for i, re := range res {
		if re.MatchString(name) && !sameJSON(schema, list.vals[list.keys[i]]) {
			at := path + "/properties/" + name
			schema = b.merge(b.resolved(schema, at, 0), b.resolved(list.vals[list.keys[i]], at, 0), at)
		}
	}
	return schema
}

// otherValue is the schema of a property that properties does not name.
func (b *schemaBuilder) otherValue(o *object, name, path string) any {
	_, res := b.patterns(o, path)
	if slices.ContainsFunc(res, func(re *regexp.Regexp) bool { return re.MatchString(name) }) {
		return b.patterned(o, name, true, path)
	}
	if add, ok := o.vals["additionalProperties"]; ok {
		return add
	}
	return true
}

// extraMember is a member that the schema does not name; nil if there is
// none.
func (b *schemaBuilder) extraMember(o *object, props *object, path string) expr {
	add, given := o.vals["additionalProperties"]
	list, _ := b.patterns(o, path)
	if !given {
		add = props == nil && len(list.keys) == 0
	}
	var names []string
	if props != nil {
		names = append(names, props.keys...)
	}
	names = append(names, b.required(o, path)...)
	if len(list.keys) == 0 && !b.keysRestricted(o, path) {
		if add == false {
			return nil
		}
		key := b.anyString()
		if len(names) > 0 {
			key = b.stringExcept(names)
		}
		return seqExpr{key, b.colon(), b.itemRule(add, path+"/additionalProperties")}
	}
	keys := b.keyLanguage(o, names, path)
	var found []*language
	for _, k := range list.keys {
		found = append(found, pattern(b.p, k, path+"/patternProperties"))
	}
	var alts altExpr
	for i, k := range list.keys {
		l := both(b.p, keys, found[i], true, path)
		for j, other := range found {
			if j != i { // a name that meets two patterns would need a value that fits both
				l = both(b.p, l, other, false, path)
			}
		}
		if list.vals[k] != false && l.useful()[0] {
			alts = append(alts, seqExpr{l.quoted(b.p), b.colon(), b.itemRule(list.vals[k], path+"/patternProperties/"+k)})
		}
	}
	if add != false {
		for _, l := range found {
			keys = both(b.p, keys, l, false, path)
		}
		if keys.useful()[0] {
			alts = append(alts, seqExpr{keys.quoted(b.p), b.colon(), b.itemRule(add, path+"/additionalProperties")})
		}
	}
	if len(alts) == 0 {
		return nil
	}
	return alts
}

// keysRestricted reports whether propertyNames says more than that names are
// strings.
func (b *schemaBuilder) keysRestricted(o *object, path string) bool {
	names, ok := o.vals["propertyNames"]
	if !ok || names == true {
		return false
	}
	n := b.resolved(names, path+"/propertyNames", 0)
	return slices.ContainsFunc(append([]string{"not"}, byType["string"]...), func(k string) bool { _, ok := n.vals[k]; return ok })
}

// keyLanguage is the names that propertyNames allows, without some.
func (b *schemaBuilder) keyLanguage(o *object, names []string, path string) *language {
	at := path + "/propertyNames"
	l := lengths(b.p, 0, -1, at)
	if v, ok := o.vals["propertyNames"]; ok {
		n := b.resolved(v, at, 0)
		source, has := n.vals["pattern"].(string)
		if f, ok := n.vals["format"].(string); ok && !has && formats[f] != "" {
			source, has = formats[f], true
		}
		l = b.stringLanguage(source, has, count(n, "minLength", 0, at), count(n, "maxLength", -1, at), at)
		for _, d := range b.deniedStrings(n, at) {
			l = both(b.p, l, d, false, at)
		}
	}
	if len(names) > 0 {
		l = both(b.p, l, texts(b.p, names, at), false, at)
	}
	return l
}

// counted is members of which least to most are there.
func (b *schemaBuilder) counted(list []member, extra expr, least, most int) expr {
	cap := max(least, most+1)
	var rules [][]expr
	for range len(list) + 1 {
		rules = append(rules, make([]expr, cap+1))
	}
	bodies := make([]expr, len(list))
	for i, m := range list {
		n := b.p.newRule()
		b.p.rules[n] = m.x
		bodies[i] = ruleExpr(n)
	}
	if extra != nil {
		n := b.p.newRule()
		b.p.rules[n] = extra
		extra = ruleExpr(n)
	}
	var from func(i, have int) expr
	from = func(i, have int) expr {
		have = min(have, cap)
		if x := rules[i][have]; x != nil {
			return x
		}
		b.p.spend(4)
		n := b.p.newRule()
		rules[i][have] = ruleExpr(n)
		var body expr
		if i == len(list) {
			body = b.countedEnd(extra, have, least, most)
		} else {
			taken := expr(seqExpr{bodies[i], from(i+1, have+1)})
			if have > 0 {
				taken = seqExpr{b.comma(), taken}
			}
			switch {
			case most >= 0 && have >= most:
				taken = altExpr{}
			case !list[i].required:
				taken = altExpr{taken, from(i+1, have)}
			}
			if most >= 0 && have >= most && !list[i].required {
				taken = from(i+1, have)
			}
			body = taken
		}
		b.p.rules[n] = body
		return ruleExpr(n)
	}
	return from(0, 0)
}

// countedEnd is the members without a name that may follow so many others.
func (b *schemaBuilder) countedEnd(extra expr, have, least, most int) expr {
	more := max(least-have, 0)
	switch {
	case extra == nil && more > 0 || most >= 0 && have > most:
		return altExpr{}
	case extra == nil:
		return seqExpr{}
	}
	room := -1
	if most >= 0 {
		room = most - have
	}
	if have > 0 {
		return repExpr{seqExpr{b.comma(), extra}, more, room}
	}
	if room == 0 {
		return seqExpr{}
	}
	if room > 0 {
		room--
	}
	some := seqExpr{extra, repExpr{seqExpr{b.comma(), extra}, max(more-1, 0), room}}
	if more == 0 {
		return optional(some)
	}
	return some
}

// dependent is an object some of whose properties ask for others: one schema
// for each choice of those that are there.
func (b *schemaBuilder) dependent(o *object, path string) expr {
	needs, _ := o.vals["dependentRequired"].(*object)
	schemas, _ := o.vals["dependentSchemas"].(*object)
	var names []string
	for _, d := range []*object{needs, schemas} {
		for i := 0; d != nil && i < len(d.keys); i++ {
			if !slices.Contains(names, d.keys[i]) {
				names = append(names, d.keys[i])
			}
		}
	}
	if len(names) == 0 {
		return b.objectSchema(o, path)
	}
	if len(names) > maxDependents {
		failf("%s: %d properties that ask for others; at most %d are supported", path, len(names), maxDependents)
	}
	var alts altExpr
	for there := range 1 << len(names) {
		s := b.ifThere(o.without("dependentRequired", "dependentSchemas"), names, there, needs, schemas, path)
		if s != nil {
			alts = append(alts, b.combined(s, path+"/dependent/"+strconv.Itoa(there)))
		}
	}
	if len(alts) == 0 {
		failf("%s: no choice of properties has those that they ask for", path)
	}
	return alts
}

// maxDependents bounds the properties that ask for others.
const maxDependents = 6

// ifThere is the schema with some of the names there and the others not; nil
// if they ask for each other.
func (b *schemaBuilder) ifThere(o *object, names []string, there int, needs, schemas *object, path string) *object {
	absent := &object{vals: map[string]any{}}
	for i, name := range names {
		if there&(1<<i) == 0 {
			absent.set(name, false)
			continue
		}
		asked := []any{name}
		if needs != nil {
			list, _ := needs.vals[name].([]any)
			asked = append(asked, list...)
		}
		o = b.merge(o, &object{keys: []string{"type", "required"}, vals: map[string]any{"type": "object", "required": asked}}, path)
		if schemas != nil && schemas.vals[name] != nil {
			o = b.merge(o, b.resolved(schemas.vals[name], path, 0), path)
		}
	}
	required := b.required(o, path)
	have, _ := o.vals["properties"].(*object)
	props := &object{vals: map[string]any{}}
	for i := 0; have != nil && i < len(have.keys); i++ {
		props.set(have.keys[i], have.vals[have.keys[i]])
	}
	for _, name := range absent.keys {
		if slices.Contains(required, name) {
			return nil
		}
		props.set(name, false)
	}
	out := o.without()
	if _, given := o.vals["additionalProperties"]; !given && have == nil {
		out.set("additionalProperties", true)
	}
	out.set("properties", props)
	return out
}
