package grammar

// jsonRules makes the rules that JSON texts share, each when first asked for.
type jsonRules struct {
	p       *program
	compact bool
	rules   map[string]int
}

func newJSONRules(p *program, compact bool) *jsonRules {
	return &jsonRules{p, compact, map[string]int{}}
}

// rule returns a rule by name, made by build at first.
func (j *jsonRules) rule(name string, build func() expr) expr {
	if n, ok := j.rules[name]; ok {
		return ruleExpr(n)
	}
	n := j.p.newRule()
	j.rules[name] = n
	j.p.rules[n] = build()
	return ruleExpr(n)
}

// space is what may stand between the parts: nothing, a space, or a line
// break with indentation. A model must not be able to go on with spaces for
// ever.
func (j *jsonRules) space() expr {
	if j.compact {
		return seqExpr{}
	}
	return j.rule("space", func() expr {
		return altExpr{seqExpr{}, bytesExpr(" "), seqExpr{bytesExpr("\n"), repExpr{bytesExpr(" "), 0, 32}}}
	})
}

// comma and colon are the separators.
func (j *jsonRules) comma() expr {
	if j.compact {
		return bytesExpr(", ")
	}
	return seqExpr{j.space(), bytesExpr(","), j.space()}
}

func (j *jsonRules) colon() expr {
	if j.compact {
		return bytesExpr(": ")
	}
	return seqExpr{bytesExpr(":"), j.space()}
}

func digit() expr { return setExpr(byteRange('0', '9')) }

// characters is any character inside a string, with all its escapes.
func (j *jsonRules) characters() expr {
	hex := func(s string) expr {
		set := &byteSet{}
		for _, c := range []byte(s) {
			set.add(c, c)
		}
		return setExpr(set)
	}
	any := hex("0123456789abcdefABCDEF")
	plain := altExpr{
		seqExpr{hex("0123456789abcefABCEF"), any, any, any},
		seqExpr{hex("dD"), hex("01234567"), any, any},
	}
	pair := seqExpr{hex("dD"), hex("89abAB"), any, any, bytesExpr(`\u`), hex("dD"), hex("cdefCDEF"), any, any}
	return altExpr{
		runeRanges(cutRanges(0, 0x10FFFF)),
		seqExpr{bytesExpr(`\`), altExpr{hex(`"\/bfnrt`), seqExpr{bytesExpr("u"), altExpr{plain, pair}}}},
	}
}

func (j *jsonRules) anyString() expr {
	return j.rule("string", func() expr {
		return seqExpr{bytesExpr(`"`), repExpr{j.characters(), 0, -1}, bytesExpr(`"`)}
	})
}

// integer and number have as many digits as a float64 can tell apart.
func (j *jsonRules) integer() expr {
	return j.rule("integer", func() expr { return seqExpr{optional(bytesExpr("-")), wholePart()} })
}

func wholePart() expr {
	return altExpr{bytesExpr("0"), seqExpr{setExpr(byteRange('1', '9')), repExpr{digit(), 0, 15}}}
}

func (j *jsonRules) number() expr {
	return j.rule("number", func() expr {
		sign := &byteSet{}
		sign.add('+', '+')
		sign.add('-', '-')
		e := &byteSet{}
		e.add('e', 'e')
		e.add('E', 'E')
		return seqExpr{
			optional(bytesExpr("-")), wholePart(),
			optional(seqExpr{bytesExpr("."), repExpr{digit(), 1, 16}}),
			optional(seqExpr{setExpr(e), optional(setExpr(sign)), repExpr{digit(), 1, 2}}),
		}
	})
}

func (j *jsonRules) boolean() expr { return altExpr{bytesExpr("true"), bytesExpr("false")} }

// value is any JSON value.
func (j *jsonRules) value() expr {
	return j.rule("value", func() expr {
		return altExpr{j.anyString(), j.number(), j.boolean(), bytesExpr("null"), j.anyArray(), j.anyObject()}
	})
}

func (j *jsonRules) anyObject() expr {
	return j.rule("object", func() expr {
		return j.objectOf(seqExpr{j.anyString(), j.colon(), j.value()}, 0)
	})
}

// objectOf is an object of members, at least min.
func (j *jsonRules) objectOf(member expr, min int) expr {
	return seqExpr{bytesExpr("{"), j.space(), j.listOf(member, min, -1), bytesExpr("}")}
}

func (j *jsonRules) anyArray() expr {
	return j.rule("array", func() expr { return j.arrayOf(j.value(), 0, -1) })
}

func (j *jsonRules) arrayOf(item expr, min, max int) expr {
	return seqExpr{bytesExpr("["), j.space(), j.listOf(item, min, max), bytesExpr("]")}
}

// listOf is min to max items with commas, and the space behind them.
func (j *jsonRules) listOf(item expr, min, max int) expr {
	if max == 0 {
		return seqExpr{}
	}
	more := max - 1
	if max < 0 {
		more = -1
	}
	list := seqExpr{item, repExpr{seqExpr{j.comma(), item}, atLeastZero(min - 1), more}, j.space()}
	if min == 0 {
		return optional(list)
	}
	return list
}

func atLeastZero(n int) int { return max(n, 0) }
