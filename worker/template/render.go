package template

import "fmt"

// scope holds the names of a block. What a block sets, the blocks around it
// do not see.
type scope struct {
	vars map[string]value
	up   *scope
}

func (s *scope) inner() *scope { return &scope{vars: map[string]value{}, up: s} }

func (s *scope) lookup(name string) (value, bool) {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// flow says how a statement ended.
type flow int

const (
	flowOn flow = iota
	flowBreak
	flowContinue
)

// renderer runs one template once.
type renderer struct {
	template *Template
	limits   Limits
	steps    int
	depth    int // macro calls and loops within the current one
	line     int
	out      *builder
	flow     flow
}

// fail ends the rendering with an Error.
func (r *renderer) fail(format string, args ...any) { failAt(r.line, format, args...) }

// step counts n steps of work.
func (r *renderer) step(n int) {
	if r.steps += n; r.steps > r.limits.Steps {
		panic(&LimitError{r.line, "Steps", r.limits.Steps})
	}
}

// made counts the work of making n bytes of text, before they are made.
func (r *renderer) made(n int) {
	if n > r.limits.Output {
		panic(&LimitError{r.line, "Output", r.limits.Output})
	}
	r.step(n / 16)
}

// call enters a macro or a recursive loop.
func (r *renderer) call(f func()) {
	if r.depth++; r.depth > r.limits.Depth {
		panic(&LimitError{r.line, "Depth", r.limits.Depth})
	}
	f()
	r.depth--
}

// write prints text.
func (r *renderer) write(t text) {
	r.made(len(t.s))
	if len(r.out.buf)+len(t.s) > r.limits.Output {
		panic(&LimitError{r.line, "Output", r.limits.Output})
	}
	r.out.add(t)
}

// capture returns what f prints.
func (r *renderer) capture(f func()) text {
	held := r.out
	r.out = &builder{}
	f()
	t := r.out.text()
	r.out = held
	return t
}

// body runs statements until one of them leaves the loop around.
func (r *renderer) body(nodes []node, e *scope) {
	for _, n := range nodes {
		r.step(1)
		n.run(r, e)
		if r.flow != flowOn {
			return
		}
	}
}

func (n *dataNode) run(r *renderer, _ *scope) { r.write(literal(n.text)) }

func (n *printNode) run(r *renderer, e *scope) {
	r.line = n.line
	r.write(r.str(n.x.eval(r, e)))
}

func (n *ifNode) run(r *renderer, e *scope) {
	r.line = n.line
	for i, t := range n.tests {
		if truth(t.eval(r, e)) {
			r.body(n.bodies[i], e)
			return
		}
	}
	r.body(n.otherwise, e)
}

func (n *setNode) run(r *renderer, e *scope) {
	r.line = n.line
	v := n.x.eval(r, e)
	if n.single {
		r.assign(n.targets[0], v, e)
		return
	}
	items := r.iterate(v)
	if len(items) != len(n.targets) {
		r.fail("cannot set %d names from %d values", len(n.targets), len(items))
	}
	for i, t := range n.targets {
		r.assign(t, items[i], e)
	}
}

func (r *renderer) assign(t setTarget, v value, e *scope) {
	if t.field == "" {
		e.vars[t.name] = v
		return
	}
	target, _ := e.lookup(t.name)
	ns, ok := target.(*namespace)
	if !ok {
		r.fail("cannot set %s.%s: %s is no namespace", t.name, t.field, t.name)
	}
	ns.fields.setName(t.field, v)
}

func (n *captureNode) run(r *renderer, e *scope) {
	var v value = r.capture(func() { r.body(n.body, e.inner()) })
	r.line = n.line
	if n.filters != nil {
		v = n.filters.over(r, e, n.hole, v)
	}
	r.assign(n.target, v, e)
}

func (n *filterNode) run(r *renderer, e *scope) {
	t := r.capture(func() { r.body(n.body, e.inner()) })
	r.line = n.line
	r.write(r.str(n.x.over(r, e, n.hole, t)))
}

// over applies a chain of filters to v. The hole at the chain's beginning is
// found by its identity, and its value lives in the scope, because templates
// are shared between renderings.
func (f *filterExpr) over(r *renderer, e *scope, hole *holeExpr, v value) value {
	inner := e.inner()
	inner.vars[hole.name()] = v
	return f.eval(r, inner)
}

func (h *holeExpr) name() string { return "\x00hole" }

func (h *holeExpr) eval(_ *renderer, e *scope) value {
	v, _ := e.lookup(h.name())
	return v
}

func (n *withNode) run(r *renderer, e *scope) {
	r.line = n.line
	inner := e.inner()
	for i, name := range n.names {
		inner.vars[name] = n.vals[i].eval(r, e)
	}
	r.body(n.body, inner)
}

func (n *generationNode) run(r *renderer, e *scope) { r.body(n.body, e.inner()) }

func (breakNode) run(r *renderer, _ *scope)    { r.flow = flowBreak }
func (continueNode) run(r *renderer, _ *scope) { r.flow = flowContinue }

// iterate returns what a for loop goes through.
func (r *renderer) iterate(v value) []value {
	switch v := v.(type) {
	case *list:
		return v.items
	case *tuple:
		return v.items
	case *generator:
		return v.items
	case *dict:
		r.step(v.len())
		return v.keys()
	case *undefined:
		return nil
	case text:
		r.made(len(v.s))
		var out []value
		at := 0
		for i := range v.s {
			if i > at {
				out = append(out, v.slice(at, i))
			}
			at = i
		}
		if at < len(v.s) {
			out = append(out, v.slice(at, len(v.s)))
		}
		r.step(len(out))
		return out
	}
	r.fail("'%s' object is not iterable", typeName(v))
	return nil
}

// checkDefined fails if v is undefined.
func (r *renderer) checkDefined(v value) {
	if u, ok := v.(*undefined); ok {
		r.fail("%s", u.reason)
	}
}

func undefinedf(format string, args ...any) *undefined {
	return &undefined{fmt.Sprintf(format, args...)}
}
