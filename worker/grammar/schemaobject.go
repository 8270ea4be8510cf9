package grammar

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// arraySchema is an array with its items and their number.
func (b *schemaBuilder) arraySchema(o *object, path string) expr {
	least := count(o, "minItems", 0, path)
	most := count(o, "maxItems", -1, path)
	if most >= 0 && most < least {
		failf("%s: maxItems is %d and minItems %d", path, most, least)
	}
	b.p.spend(max(least, most))
	prefix, _ := o.vals["prefixItems"].([]any)
	rest, given := o.vals["items"]
	if list, ok := rest.([]any); ok { // the older way to write prefixItems
		prefix = list
		rest, given = o.vals["additionalItems"]
	}
	var item expr
	switch {
	case !given && len(prefix) > 0 || rest == false:
		item = nil
	case !given:
		item = b.value()
	default:
		item = b.itemRule(rest, path+"/items")
	}
	if len(prefix) > 0 {
		return b.tuple(prefix, item, least, most, path)
	}
	if item == nil {
		if least > 0 {
			failf("%s: items is false and minItems %d", path, least)
		}
		return seqExpr{bytesExpr("["), b.space(), bytesExpr("]")}
	}
	return b.arrayOf(item, least, most)
}

// itemRule makes a schema a rule of its own: it stands in several places.
func (b *schemaBuilder) itemRule(s any, path string) expr {
	x := b.schema(s, path)
	if _, ok := x.(ruleExpr); ok {
		return x
	}
	n := b.p.newRule()
	b.p.rules[n] = x
	return ruleExpr(n)
}

// tuple is an array whose first items have schemas of their own.
func (b *schemaBuilder) tuple(prefix []any, item expr, least, most int, path string) expr {
	if most >= 0 && most < len(prefix) {
		prefix = prefix[:most]
	}
	more := -1
	if most >= 0 {
		more = most - len(prefix)
	}
	if item == nil {
		more = 0
		if least > len(prefix) {
			failf("%s: minItems is %d, and only %d items have a schema", path, least, len(prefix))
		}
	}
	var tail expr = seqExpr{}
	if more != 0 {
		tail = repExpr{seqExpr{b.comma(), item}, max(least-len(prefix), 0), more}
	}
	for i := len(prefix) - 1; i >= 0; i-- {
		x := b.schema(prefix[i], path+"/prefixItems/"+strconv.Itoa(i))
		if i > 0 {
			tail = seqExpr{b.comma(), x, tail}
		} else {
			tail = seqExpr{x, tail, b.space()}
		}
		if i >= least {
			tail = optional(tail)
		}
	}
	return seqExpr{bytesExpr("["), b.space(), tail, bytesExpr("]")}
}

// member is a property of an object.
type member struct {
	x        expr // the whole member
	required bool
}

// objectSchema is an object with its properties, in the schema's order.
func (b *schemaBuilder) objectSchema(o *object, path string) expr {
	props, _ := o.vals["properties"].(*object)
	if _, given := o.vals["properties"]; given && props == nil {
		failf("%s/properties is not an object", path)
	}
	required := b.required(o, path)
	extra := b.extraMember(o, props, path)
	if props == nil {
		props = &object{vals: map[string]any{}}
	}
	var members []member
	for _, name := range props.keys {
		value := b.schema(props.vals[name], path+"/properties/"+name)
		key := appendJSON(nil, name, ":", ",")
		b.p.spend(len(key))
		members = append(members, member{seqExpr{bytesExpr(key), b.colon(), value}, slices.Contains(required, name)})
	}
	for _, name := range required {
		if _, ok := props.vals[name]; ok {
			continue
		}
		if extra == nil {
			failf("%s: %q is required, but no property of that name is allowed", path, name)
		}
		members = append(members, member{seqExpr{bytesExpr(appendJSON(nil, name, ":", ",")), b.colon(), b.value()}, true})
	}
	if len(members) == 0 {
		if extra == nil {
			return seqExpr{bytesExpr("{"), b.space(), bytesExpr("}")}
		}
		return b.objectOf(extra, 0)
	}
	return seqExpr{bytesExpr("{"), b.space(), b.members(members, extra), bytesExpr("}")}
}

func (b *schemaBuilder) required(o *object, path string) []string {
	list, given := o.vals["required"].([]any)
	if _, any := o.vals["required"]; any && !given {
		failf("%s/required is not a list", path)
	}
	var names []string
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			failf("%s/required holds what is not a string", path)
		}
		if !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

// extraMember is a member that the schema does not name; nil if there is
// none.
func (b *schemaBuilder) extraMember(o *object, props *object, path string) expr {
	add, given := o.vals["additionalProperties"]
	if !given {
		add = props == nil
	}
	if add == false {
		return nil
	}
	var value expr
	if add == true {
		value = b.value()
	} else {
		value = b.itemRule(add, path+"/additionalProperties")
	}
	var names []string
	if props != nil {
		names = append(names, props.keys...)
	}
	names = append(names, b.required(o, path)...)
	key := b.anyString()
	if len(names) > 0 {
		key = b.stringExcept(names)
	}
	return seqExpr{key, b.colon(), value}
}

// members puts commas between the members that are there. rest[i] is what may
// follow when some member before i is there, first[i] when none is.
func (b *schemaBuilder) members(list []member, extra expr) expr {
	end := expr(b.space())
	rest, first := end, expr(seqExpr{})
	if extra != nil {
		extraRule := b.p.newRule()
		b.p.rules[extraRule] = extra
		rest = seqExpr{repExpr{seqExpr{b.comma(), ruleExpr(extraRule)}, 0, -1}, end}
		first = optional(seqExpr{ruleExpr(extraRule), rest})
	}
	for i := len(list) - 1; i >= 0; i-- {
		m := list[i]
		// Rules, since each is used twice.
		body, after := b.p.newRule(), b.p.newRule()
		b.p.rules[body] = m.x
		b.p.rules[after] = rest
		with := seqExpr{ruleExpr(body), ruleExpr(after)}
		if m.required {
			first = with
			rest = seqExpr{b.comma(), with}
			continue
		}
		without := b.p.newRule()
		b.p.rules[without] = first
		first = altExpr{with, ruleExpr(without)}
		rest = altExpr{seqExpr{b.comma(), with}, ruleExpr(after)}
	}
	return first
}

// stringExcept is a string without escapes that is none of the names.
func (b *schemaBuilder) stringExcept(names []string) expr {
	plain := func(not []rune) expr {
		slices.Sort(not)
		var ranges []rune
		lo := rune(0)
		for _, c := range not {
			if c > lo {
				ranges = append(ranges, cutRanges(lo, c-1)...)
			}
			lo = c + 1
		}
		return runeRanges(append(ranges, cutRanges(lo, utf8.MaxRune)...))
	}
	tail := b.rule("plain tail", func() expr { return seqExpr{repExpr{plain(nil), 0, -1}, bytesExpr(`"`)} })
	var build func(names []string, depth int) expr
	build = func(names []string, depth int) expr {
		b.p.spend(8)
		if depth > 1000 {
			failf("a property's name is longer than 1000 characters")
		}
		byFirst := map[rune][]string{}
		var order []rune
		whole := false
		for _, n := range names {
			if n == "" {
				whole = true
				continue
			}
			c, size := utf8.DecodeRuneInString(n)
			if byFirst[c] == nil {
				order = append(order, c)
			}
			byFirst[c] = append(byFirst[c], n[size:])
		}
		var alts altExpr
		if !whole {
			alts = append(alts, bytesExpr(`"`))
		}
		for _, c := range order {
			if c >= 0x20 && c != '"' && c != '\\' {
				alts = append(alts, seqExpr{bytesExpr(string(c)), build(byFirst[c], depth+1)})
			}
		}
		return append(alts, seqExpr{plain(order), tail})
	}
	return seqExpr{bytesExpr(`"`), build(names, 0)}
}
