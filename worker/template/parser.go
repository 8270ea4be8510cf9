package template

import (
	"fmt"
	"slices"
	"strings"
)

// parser builds the tree of a template.
type parser struct {
	tokens []token
	at     int
	depth  int
	loops  int // loops around the statement, for break and continue
	ifs    int // conditions around: what they guard may name unknown filters
	// used collects the names that macros ask for, innermost last.
	used []*macroDef

	filters map[string]filterFunc
	tests   map[string]testFunc
}

// maxParseDepth bounds how deep a template's statements and expressions
// nest.
const maxParseDepth = 200

// failAt ends parsing or rendering with an Error. Parse and Render recover
// it.
func failAt(line int, format string, args ...any) {
	panic(&Error{Line: line, Msg: fmt.Sprintf(format, args...)})
}

func (p *parser) tok() token { return p.tokens[p.at] }

func (p *parser) fail(format string, args ...any) { failAt(p.tok().line, format, args...) }

// next returns the token and moves past it. The last one, tokEOF, stays.
func (p *parser) next() token {
	t := p.tok()
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxParseDepth {
		p.fail("nested deeper than %d levels", maxParseDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) isOp(op string) bool {
	t := p.tok()
	return t.kind == tokOp && t.text == op
}

func (p *parser) isName(name string) bool {
	t := p.tok()
	return t.kind == tokName && t.text == name
}

func (p *parser) takeOp(op string) bool {
	if p.isOp(op) {
		p.at++
		return true
	}
	return false
}

func (p *parser) takeName(name string) bool {
	if p.isName(name) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expectOp(op string) {
	if !p.takeOp(op) {
		p.fail("expected %q, found %s", op, p.describe())
	}
}

func (p *parser) expectName() string {
	if p.tok().kind != tokName {
		p.fail("expected a name, found %s", p.describe())
	}
	return p.next().text
}

func (p *parser) expectBlockEnd() {
	if p.tok().kind != tokBlockEnd {
		p.fail("expected the end of the tag, found %s", p.describe())
	}
	p.at++
}

// describe names the current token for an error.
func (p *parser) describe() string {
	switch t := p.tok(); t.kind {
	case tokEOF:
		return "the end of the template"
	case tokBlockEnd, tokPrintEnd:
		return "the end of the tag"
	case tokData:
		return "text"
	default:
		return fmt.Sprintf("%q", t.text)
	}
}

// body reads statements up to a tag that begins with one of ends, and
// returns that word, with the parser behind it.
func (p *parser) body(ends ...string) ([]node, string) {
	p.enter()
	defer p.leave()
	var nodes []node
	for {
		t := p.next()
		switch t.kind {
		case tokData:
			nodes = append(nodes, &dataNode{t.text})
		case tokPrintBegin:
			x := p.tupleOrExpr()
			if p.tok().kind != tokPrintEnd {
				p.fail("expected the end of the tag, found %s", p.describe())
			}
			p.at++
			nodes = append(nodes, &printNode{t.line, x})
		case tokBlockBegin:
			name := p.expectName()
			if slices.Contains(ends, name) {
				return nodes, name
			}
			if n := p.statement(name, t.line); n != nil {
				nodes = append(nodes, n)
			}
		case tokEOF:
			if len(ends) > 0 {
				p.fail("the template ends where %s is expected", strings.Join(ends, " or "))
			}
			return nodes, ""
		default:
			p.at--
			p.fail("unexpected %s", p.describe())
		}
	}
}

// block reads statements up to the end tag, whole.
func (p *parser) block(end string) []node {
	nodes, _ := p.body(end)
	p.expectBlockEnd()
	return nodes
}

func (p *parser) statement(name string, line int) node {
	switch name {
	case "if":
		return p.ifStatement(line)
	case "for":
		return p.forStatement(line)
	case "set":
		return p.setStatement(line)
	case "macro":
		return p.macroStatement(line)
	case "call":
		return p.callStatement(line)
	case "filter":
		hole := &holeExpr{}
		x := p.filterChain(hole, true)
		p.expectBlockEnd()
		return &filterNode{line, x, hole, p.block("endfilter")}
	case "with":
		return p.withStatement(line)
	case "generation":
		p.expectBlockEnd()
		return &generationNode{p.block("endgeneration")}
	case "break", "continue":
		if p.loops == 0 {
			p.fail("%s stands outside a loop", name)
		}
		p.expectBlockEnd()
		if name == "break" {
			return breakNode{}
		}
		return continueNode{}
	case "include", "import", "from", "extends", "block":
		p.fail("%s is not supported: a chat template stands alone", name)
	}
	p.fail("unknown tag %q", name)
	return nil
}

func (p *parser) ifStatement(line int) node {
	n := &ifNode{line: line}
	p.ifs++
	defer func() { p.ifs-- }()
	for {
		n.tests = append(n.tests, p.tupleOrExpr())
		p.expectBlockEnd()
		body, end := p.body("elif", "else", "endif")
		n.bodies = append(n.bodies, body)
		if end == "elif" {
			continue
		}
		p.expectBlockEnd()
		if end == "else" {
			n.otherwise = p.block("endif")
		}
		return n
	}
}

func (p *parser) forStatement(line int) node {
	n := &forNode{line: line}
	n.target, n.single = p.targets()
	if !p.takeName("in") {
		p.fail("expected in, found %s", p.describe())
	}
	n.in = p.tupleWithoutCond()
	if p.takeName("if") {
		n.cond = p.expression()
	}
	n.recursive = p.takeName("recursive")
	p.expectBlockEnd()
	p.loops++
	body, end := p.body("else", "endfor")
	p.loops--
	n.body = body
	p.expectBlockEnd()
	if end == "else" {
		n.otherwise = p.block("endfor")
	}
	return n
}

// targets reads the names that a loop assigns: a, or a, b, or (a, b).
func (p *parser) targets() (names []string, single bool) {
	paren := p.takeOp("(")
	names = append(names, p.expectName())
	single = true
	for p.takeOp(",") {
		single = false
		if p.tok().kind != tokName || p.isName("in") {
			break
		}
		names = append(names, p.expectName())
	}
	if paren {
		p.expectOp(")")
	}
	return names, single
}

func (p *parser) setTarget() setTarget {
	t := setTarget{name: p.expectName()}
	if p.takeOp(".") {
		t.field = p.expectName()
	}
	return t
}

func (p *parser) setStatement(line int) node {
	targets := []setTarget{p.setTarget()}
	single := true
	for p.takeOp(",") {
		single = false
		if p.isOp("=") {
			break
		}
		targets = append(targets, p.setTarget())
	}
	if p.takeOp("=") {
		n := &setNode{line, targets, single, p.tupleOrExpr()}
		p.expectBlockEnd()
		return n
	}
	if !single {
		p.fail("expected =, found %s", p.describe())
	}
	n := &captureNode{line: line, target: targets[0], hole: &holeExpr{}}
	if p.isOp("|") {
		n.filters = p.filterChain(n.hole, false)
	}
	p.expectBlockEnd()
	n.body = p.block("endset")
	return n
}

// filterChain reads filters that are applied to a hole; inline says that the
// first is written without its bar.
func (p *parser) filterChain(hole *holeExpr, inline bool) *filterExpr {
	var x expr = hole
	for first := true; inline && first || p.isOp("|"); first = false {
		if !(inline && first) {
			p.at++
		}
		x = p.filter(x)
	}
	return x.(*filterExpr)
}

// loopless reads a body that break and continue cannot leave.
func (p *parser) loopless(read func() []node) []node {
	held := p.loops
	p.loops = 0
	defer func() { p.loops = held }()
	return read()
}

// params reads the parameters of a macro, the bracket being open.
func (p *parser) params(def *macroDef) {
	for !p.takeOp(")") {
		if len(def.params) > 0 {
			p.expectOp(",")
		}
		def.params = append(def.params, p.expectName())
		if p.takeOp("=") {
			def.defaults = append(def.defaults, p.expression())
		} else if len(def.defaults) > 0 {
			p.fail("a parameter without a default follows one with a default")
		}
	}
}

func (p *parser) macroBody(def *macroDef, end string) {
	p.used = append(p.used, def)
	def.body = p.loopless(func() []node { return p.block(end) })
	p.used = p.used[:len(p.used)-1]
}

func (p *parser) macroStatement(line int) node {
	def := &macroDef{name: p.expectName()}
	p.expectOp("(")
	p.params(def)
	p.expectBlockEnd()
	p.macroBody(def, "endmacro")
	return &macroNode{line, def}
}

func (p *parser) callStatement(line int) node {
	def := &macroDef{name: "caller"}
	if p.takeOp("(") {
		p.params(def)
	}
	x := p.expression()
	call, ok := x.(*callExpr)
	if !ok {
		p.fail("a call block needs a call")
	}
	p.expectBlockEnd()
	p.macroBody(def, "endcall")
	return &callNode{line, def, call}
}

func (p *parser) withStatement(line int) node {
	n := &withNode{line: line}
	for p.tok().kind != tokBlockEnd {
		if len(n.names) > 0 {
			p.expectOp(",")
		}
		n.names = append(n.names, p.expectName())
		p.expectOp("=")
		n.vals = append(n.vals, p.expression())
	}
	p.expectBlockEnd()
	n.body = p.block("endwith")
	return n
}
