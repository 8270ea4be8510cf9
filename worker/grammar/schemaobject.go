package grammar

import (
	"slices"
	"unicode/utf8"
)

// member is a property of an object.
type member struct {
	x        expr // the whole member
	required bool
}

// objectSchema is an object with its properties, in the schema's order.
func (b *schemaBuilder) objectSchema(o *object, path string) expr {
	b.nameMembers(&o, path)
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
	add := func(name string, schema any, must bool, at string) {
		key := appendJSON(nil, name, ":", ",")
		b.p.spend(len(key))
		members = append(members, member{seqExpr{bytesExpr(key), b.colon(), b.schema(schema, at)}, must})
	}
	for _, name := range props.keys {
		must := slices.Contains(required, name)
		never := b.never(props.vals[name])
		if never && must {
			failf("%s: %q is required, and no value of it is allowed", path, name)
		}
		if !never {
			add(name, b.patterned(o, name, props.vals[name], path), must, path+"/properties/"+name)
		}
	}
	for _, name := range required {
		if _, ok := props.vals[name]; ok {
			continue
		}
		if extra == nil {
			failf("%s: %q is required, but no property of that name is allowed", path, name)
		}
		add(name, b.otherValue(o, name, path), true, path+"/additionalProperties")
	}
	least, most := count(o, "minProperties", 0, path), count(o, "maxProperties", -1, path)
	switch {
	case len(members) == 0 && extra == nil && least == 0:
		return seqExpr{bytesExpr("{"), b.space(), bytesExpr("}")}
	case len(members) == 0 && extra != nil && most < 0:
		return b.objectOf(extra, least)
	case least <= len(required) && (most < 0 || extra == nil && most >= len(members)):
		return seqExpr{bytesExpr("{"), b.space(), b.members(members, extra), bytesExpr("}")}
	}
	return seqExpr{bytesExpr("{"), b.space(), b.counted(members, extra, least, most), b.space(), bytesExpr("}")}
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
