package grammar

import (
	"strconv"
	"strings"
)

// triggered is free text in which each trigger begins one of the tags that
// begin with it.
func (b *tagBuilder) triggered(o *object, path string) expr {
	var triggers []trigger
	groups := map[string]altExpr{}
	names := strs(o, "triggers", path)
	if len(names) == 0 {
		failf("%s/triggers is not a list with texts", path)
	}
	var whole altExpr
	for i, t := range items(o, "tags", path) {
		at := path + "/tags/" + strconv.Itoa(i)
		tag := asObject(t, at)
		begin := str(tag, "begin", at)
		rest := b.rest(tag, at)
		found := ""
		for _, name := range names {
			switch {
			case !strings.HasPrefix(begin, name):
			case found != "":
				failf("%s/begin is %q, which begins with the triggers %q and %q; want one", at, begin, found, name)
			default:
				found = name
			}
		}
		if found == "" {
			failf("%s/begin is %q, which begins with no trigger", at, begin)
		}
		b.p.spend(2 * len(begin))
		n := b.p.newRule()
		b.p.rules[n] = rest
		groups[found] = append(groups[found], seqExpr{bytesExpr(begin[len(found):]), ruleExpr(n)})
		whole = append(whole, seqExpr{bytesExpr(begin), ruleExpr(n)})
	}
	for _, name := range names {
		n := b.p.newRule()
		b.p.rules[n] = groups[name]
		triggers = append(triggers, trigger{name, ruleExpr(n)})
	}
	once := flag(o, "stop_after_first", path)
	excludes := append(strs(o, "excludes", path), b.ends...)
	if !flag(o, "at_least_one", path) {
		return freeText(b.p, triggers, excludes, once)
	}
	if once {
		return whole
	}
	return seqExpr{whole, freeText(b.p, triggers, excludes, false)}
}

// separated is tags with a text between them, and nothing else.
func (b *tagBuilder) separated(o *object, path string) expr {
	var alts altExpr
	for i, t := range items(o, "tags", path) {
		at := path + "/tags/" + strconv.Itoa(i)
		tag := asObject(t, at)
		alts = append(alts, seqExpr{b.text(tag, "begin", at), b.rest(tag, at)})
	}
	n := b.p.newRule()
	b.p.rules[n] = alts
	x := seqExpr{ruleExpr(n)}
	between := b.text(o, "separator", path)
	if !flag(o, "stop_after_first", path) {
		x = append(x, repExpr{seqExpr{between, ruleExpr(n)}, 0, -1})
	}
	if !flag(o, "at_least_one", path) {
		return optional(x)
	}
	return x
}

// repeated is a format some times.
func (b *tagBuilder) repeated(o *object, kind, path string) expr {
	least, most := 0, -1
	switch kind {
	case "optional":
		most = 1
	case "plus":
		least = 1
	case "repeat":
		least = number(o, "min", -1, path)
		if n, _ := o.vals["max"].(interface{ String() string }); n == nil || n.String() != "-1" {
			most = number(o, "max", -2, path)
		}
		if least < 0 || most == -2 || most >= 0 && most < least {
			failf("%s: repeat needs min and max, with min not above max; max -1 is no bound", path)
		}
	}
	n := b.p.newRule()
	b.p.rules[n] = b.format(o.vals["content"], path+"/content")
	b.p.spend(max(least, most, 0))
	return repExpr{ruleExpr(n), least, most}
}

// dispatch is free text in which a pattern is followed by its format.
func (b *tagBuilder) dispatch(o *object, path string) expr {
	var triggers []trigger
	for i, r := range items(o, "rules", path) {
		at := path + "/rules/" + strconv.Itoa(i)
		pair, _ := r.([]any)
		if len(pair) != 2 {
			failf("%s is not a pattern and a format", at)
		}
		pattern, ok := pair[0].(string)
		if !ok || pattern == "" {
			failf("%s has a pattern that is no text, or empty", at)
		}
		n := b.p.newRule()
		b.p.rules[n] = b.format(pair[1], at)
		triggers = append(triggers, trigger{pattern, ruleExpr(n)})
	}
	once := o.vals["loop"] != nil && !flag(o, "loop", path)
	return freeText(b.p, triggers, strs(o, "excludes", path), once)
}
