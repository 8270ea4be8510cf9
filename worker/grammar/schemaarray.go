package grammar

import (
	"math/bits"
	"slices"
	"strconv"
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
	if x, ok := b.uniqueItems(o, rest, least, most, path); ok {
		return x
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

// maxUnique bounds the values of which an array can be held to have each once.
const maxUnique = 10

// uniqueItems is an array of which no item comes twice, where the items are
// some listed values: a graph of the sets that are there already. Items of
// other kinds are not held to it.
func (b *schemaBuilder) uniqueItems(o *object, items any, least, most int, path string) (expr, bool) {
	s, ok := items.(*object)
	if o.vals["uniqueItems"] != true || !ok {
		return nil, false
	}
	s = b.resolved(s, path+"/items", 0)
	list := values(s)
	if s.vals["type"] == "boolean" && list == nil {
		list = []string{"true", "false"}
	}
	if len(list) == 0 || len(list) > maxUnique {
		return nil, false
	}
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	if least > len(list) {
		failf("%s: minItems is %d, and only %d items can differ", path, least, len(list))
	}
	g := make(graphExpr, 1<<len(list))
	for set := range g {
		have := bits.OnesCount(uint(set))
		g[set].final = have >= least
		for i, v := range list {
			if set&(1<<i) != 0 || most >= 0 && have >= most {
				continue
			}
			x := expr(bytesExpr(v))
			if have > 0 {
				x = seqExpr{b.comma(), x}
			}
			b.p.spend(4)
			g[set].edges = append(g[set].edges, graphEdge{x, set | 1<<i})
		}
	}
	return seqExpr{bytesExpr("["), b.space(), g, b.space(), bytesExpr("]")}, true
}
