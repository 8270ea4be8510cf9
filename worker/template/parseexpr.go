package template

// expression reads one expression, conditional ones included.
func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	x := p.orExpression()
	for p.takeName("if") {
		test := p.orExpression()
		var b expr
		if p.takeName("else") {
			b = p.expression()
		}
		x = &condExpr{test, x, b}
	}
	return x
}

// tupleOrExpr reads an expression, or several with commas: a tuple.
func (p *parser) tupleOrExpr() expr { return p.commas(p.expression) }

// tupleWithoutCond is tupleOrExpr where "if" ends the expression.
func (p *parser) tupleWithoutCond() expr { return p.commas(p.orExpression) }

func (p *parser) commas(read func() expr) expr {
	x := read()
	if !p.isOp(",") {
		return x
	}
	items := []expr{x}
	for p.takeOp(",") {
		if k := p.tok().kind; k == tokBlockEnd || k == tokPrintEnd || p.isOp(")") {
			break
		}
		items = append(items, read())
	}
	return &tupleExpr{items}
}

func (p *parser) orExpression() expr {
	x := p.andExpression()
	for p.takeName("or") {
		x = &orExpr{x, p.andExpression()}
	}
	return x
}

func (p *parser) andExpression() expr {
	x := p.notExpression()
	for p.takeName("and") {
		x = &andExpr{x, p.notExpression()}
	}
	return x
}

func (p *parser) notExpression() expr {
	if p.takeName("not") {
		p.enter()
		defer p.leave()
		return &notExpr{p.notExpression()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	line := p.tok().line
	x := p.sum()
	c := &compareExpr{line: line, x: x}
	for {
		op := ""
		switch t := p.tok(); {
		case t.kind == tokOp && (t.text == "==" || t.text == "!=" || t.text == "<" || t.text == "<=" || t.text == ">" || t.text == ">="):
			op = t.text
			p.at++
		case p.takeName("in"):
			op = "in"
		case p.isName("not") && p.tokens[p.at+1].kind == tokName && p.tokens[p.at+1].text == "in":
			op = "not in"
			p.at += 2
		}
		if op == "" {
			break
		}
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
	if len(c.ops) == 0 {
		return x
	}
	return c
}

func (p *parser) sum() expr {
	x := p.concatenation()
	for p.isOp("+") || p.isOp("-") {
		t := p.next()
		x = &binaryExpr{t.line, t.text, x, p.concatenation()}
	}
	return x
}

func (p *parser) concatenation() expr {
	x := p.product()
	if !p.isOp("~") {
		return x
	}
	items := []expr{x}
	for p.takeOp("~") {
		items = append(items, p.product())
	}
	return &concatExpr{items}
}

func (p *parser) product() expr {
	x := p.power()
	for p.isOp("*") || p.isOp("/") || p.isOp("//") || p.isOp("%") {
		t := p.next()
		x = &binaryExpr{t.line, t.text, x, p.power()}
	}
	return x
}

func (p *parser) power() expr {
	x := p.unary(true)
	for p.isOp("**") {
		t := p.next()
		x = &binaryExpr{t.line, t.text, x, p.unary(true)}
	}
	return x
}

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	var x expr
	switch {
	case p.takeOp("-"):
		x = &negExpr{p.unary(false), false}
	case p.takeOp("+"):
		x = &negExpr{p.unary(false), true}
	default:
		x = p.primary()
	}
	x = p.postfix(x)
	if !filters {
		return x
	}
	for {
		switch {
		case p.takeOp("|"):
			x = p.filter(x)
		case p.isName("is"):
			x = p.test(x)
		case p.isOp("("):
			x = p.call(x)
		default:
			return x
		}
	}
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokName:
		return p.name(t.text)
	case tokString:
		s := t.text
		for p.tok().kind == tokString {
			s += p.next().text
		}
		return &constExpr{literal(s)}
	case tokInt:
		return &constExpr{t.i}
	case tokFloat:
		return &constExpr{t.f}
	case tokOp:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			return &listExpr{p.items("]")}
		case "{":
			return p.dictDisplay()
		}
	}
	if t.kind != tokEOF {
		p.at--
	}
	p.fail("expected an expression, found %s", p.describe())
	return nil
}

func (p *parser) name(name string) expr {
	switch name {
	case "true", "True":
		return &constExpr{true}
	case "false", "False":
		return &constExpr{false}
	case "none", "None":
		return &constExpr{nil}
	case "varargs":
		for _, d := range p.used {
			d.usesVarargs = true
		}
	case "kwargs":
		for _, d := range p.used {
			d.usesKwargs = true
		}
	}
	return &nameExpr{name}
}

func (p *parser) parenthesis() expr {
	if p.takeOp(")") {
		return &tupleExpr{}
	}
	x := p.tupleOrExpr()
	p.expectOp(")")
	return x
}

// items reads expressions up to a closing bracket.
func (p *parser) items(end string) []expr {
	var out []expr
	for !p.takeOp(end) {
		if len(out) > 0 {
			p.expectOp(",")
			if p.takeOp(end) {
				break
			}
		}
		out = append(out, p.expression())
	}
	return out
}

func (p *parser) dictDisplay() expr {
	d := &dictExpr{}
	for !p.takeOp("}") {
		if len(d.keys) > 0 {
			p.expectOp(",")
			if p.takeOp("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.expectOp(":")
		d.vals = append(d.vals, p.expression())
	}
	return d
}

func (p *parser) postfix(x expr) expr {
	for {
		switch {
		case p.takeOp("."):
			if t := p.tok(); t.kind == tokInt {
				p.at++
				x = &indexExpr{x, &constExpr{t.i}}
				continue
			}
			x = &attrExpr{x, p.expectName()}
		case p.takeOp("["):
			x = p.subscript(x)
		case p.isOp("("):
			x = p.call(x)
		default:
			return x
		}
	}
}

func (p *parser) subscript(x expr) expr {
	var parts [3]expr
	n := 0
	for !p.isOp("]") {
		if p.takeOp(":") {
			if n++; n > 2 {
				p.fail("a slice has at most three parts")
			}
			continue
		}
		if parts[n] != nil {
			p.fail("expected ], found %s", p.describe())
		}
		parts[n] = p.expression()
	}
	p.at++
	if n > 0 {
		return &sliceExpr{x, parts[0], parts[1], parts[2]}
	}
	if parts[0] == nil {
		p.fail("a subscript is empty")
	}
	return &indexExpr{x, parts[0]}
}

func (p *parser) call(fn expr) expr {
	line := p.tok().line
	return &callExpr{line, fn, p.arguments()}
}

// arguments reads the arguments of a call with their brackets.
func (p *parser) arguments() argExprs {
	var a argExprs
	p.expectOp("(")
	for n := 0; !p.takeOp(")"); n++ {
		if n > 0 {
			p.expectOp(",")
			if p.takeOp(")") {
				break
			}
		}
		switch next := p.tokens[min(p.at+1, len(p.tokens)-1)]; {
		case p.takeOp("*"):
			a.spread = p.expression()
		case p.takeOp("**"):
			a.spreadDict = p.expression()
		case p.tok().kind == tokName && next.kind == tokOp && next.text == "=":
			a.names = append(a.names, p.next().text)
			p.at++
			a.named = append(a.named, p.expression())
		default:
			if len(a.named) > 0 || a.spread != nil || a.spreadDict != nil {
				p.fail("an argument by position follows one by name")
			}
			a.positional = append(a.positional, p.expression())
		}
	}
	return a
}

// filter reads a filter's name and arguments, the bar being read.
func (p *parser) filter(x expr) *filterExpr {
	line := p.tok().line
	name := p.expectName()
	run, ok := p.filters[name]
	if !ok && p.ifs == 0 {
		p.fail("unknown filter %q", name)
	}
	if !ok {
		run = func(r *renderer, _ value, _ *arguments) value {
			r.fail("unknown filter %q", name)
			return nil
		}
	}
	f := &filterExpr{line: line, x: x, name: name, run: run}
	if p.isOp("(") {
		f.args = p.arguments()
	}
	return f
}

// test reads "is name", "is not name" and the test's argument.
func (p *parser) test(x expr) expr {
	t := &testExpr{line: p.tok().line, x: x}
	p.at++
	t.not = p.takeName("not")
	name := p.expectName()
	run, ok := p.tests[name]
	if !ok && p.ifs == 0 {
		p.fail("unknown test %q", name)
	}
	if !ok {
		run = func(r *renderer, _ value, _ *arguments) bool {
			r.fail("unknown test %q", name)
			return false
		}
	}
	t.run = run
	switch k := p.tok(); {
	case p.isOp("("):
		t.args = p.arguments()
	case k.kind == tokName && k.text != "else" && k.text != "or" && k.text != "and" && k.text != "if" && k.text != "is" && k.text != "not" && k.text != "in" && k.text != "recursive",
		k.kind == tokString, k.kind == tokInt, k.kind == tokFloat, p.isOp("["), p.isOp("{"):
		t.args.positional = []expr{p.postfix(p.primary())}
	}
	return t
}
