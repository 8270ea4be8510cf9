package grammar

// buildCalls returns an array of calls. Each tool's schema is a document of
// its own, so that its references stay within it.
func buildCalls(p *program, s Spec) expr {
	if len(s.Calls) > maxChoices {
		failf("there are %d tools; at most %d are allowed", len(s.Calls), maxChoices)
	}
	rules := newJSONRules(p, s.Compact)
	var alts altExpr
	for _, c := range s.Calls {
		var args expr
		if len(c.Parameters) == 0 {
			args = rules.anyObject()
		} else {
			b := &schemaBuilder{jsonRules: rules, root: decodeSchema(c.Parameters), refs: map[string]int{}}
			args = b.schema(b.root, "tool "+c.Name+" #")
		}
		name := appendJSON(nil, c.Name, ":", ",")
		p.spend(len(name))
		alts = append(alts, seqExpr{
			bytesExpr("{"), rules.space(), bytesExpr(`"name"`), rules.colon(), bytesExpr(name), rules.comma(),
			bytesExpr(`"parameters"`), rules.colon(), args, rules.space(), bytesExpr("}"),
		})
	}
	call := p.newRule()
	p.rules[call] = alts
	most := -1
	if s.OneCall {
		most = 1
	}
	return rules.arrayOf(ruleExpr(call), 1, most)
}
