package template

// loop is the name "loop" inside a for loop.
type loop struct {
	node   *forNode
	scope  *scope // around the loop
	items  []value
	at     int
	depth  int // 0 for the outermost of a recursive loop
	last   value
	called bool // changed() was called
}

func (n *forNode) run(r *renderer, e *scope) {
	r.line = n.line
	r.loop(n, e, n.in.eval(r, e), 0)
}

// loop runs a for statement over the items of v.
func (r *renderer) loop(n *forNode, e *scope, v value, depth int) {
	items := r.iterate(v)
	if n.cond != nil {
		var kept []value
		for _, it := range items {
			inner := e.inner()
			r.bindTarget(n, inner, it)
			if truth(n.cond.eval(r, inner)) {
				kept = append(kept, it)
			}
		}
		items = kept
	}
	l := &loop{node: n, scope: e, items: items, depth: depth}
	for i, it := range items {
		r.step(1)
		l.at = i
		inner := e.inner()
		inner.vars["loop"] = l
		r.bindTarget(n, inner, it)
		r.body(n.body, inner)
		left := r.flow
		r.flow = flowOn
		if left == flowBreak {
			break
		}
	}
	if len(items) == 0 {
		r.body(n.otherwise, e.inner())
	}
}

// bindTarget gives a loop's names their values.
func (r *renderer) bindTarget(n *forNode, e *scope, it value) {
	if n.single {
		e.vars[n.target[0]] = it
		return
	}
	parts := r.iterate(it)
	if len(parts) != len(n.target) {
		r.line = n.line
		r.fail("cannot set %d names from %d values", len(n.target), len(parts))
	}
	for i, name := range n.target {
		e.vars[name] = parts[i]
	}
}

// attr returns loop.name.
func (l *loop) attr(name string) value {
	n := int64(len(l.items))
	at := int64(l.at)
	switch name {
	case "index":
		return at + 1
	case "index0":
		return at
	case "revindex":
		return n - at
	case "revindex0":
		return n - at - 1
	case "first":
		return at == 0
	case "last":
		return at == n-1
	case "length":
		return n
	case "depth":
		return int64(l.depth) + 1
	case "depth0":
		return int64(l.depth)
	case "previtem":
		if l.at > 0 {
			return l.items[l.at-1]
		}
		return undefinedf("there is no previous item")
	case "nextitem":
		if l.at+1 < len(l.items) {
			return l.items[l.at+1]
		}
		return undefinedf("there is no next item")
	case "cycle":
		return &function{"cycle", func(r *renderer, a *arguments) value {
			if len(a.positional) == 0 {
				r.fail("no items for cycling given")
			}
			return a.positional[l.at%len(a.positional)]
		}}
	case "changed":
		return &function{"changed", func(_ *renderer, a *arguments) value {
			now := &tuple{items: a.positional}
			changed := !l.called || !equal(l.last, now)
			l.called, l.last = true, now
			return changed
		}}
	}
	return undefinedf("'LoopContext object' has no attribute '%s'", name)
}

// again runs a recursive loop over the items of v and returns what it prints.
func (l *loop) again(r *renderer, v value) value {
	if !l.node.recursive {
		r.fail("the loop is not recursive; write recursive in its tag")
	}
	var t text
	r.call(func() {
		t = r.capture(func() { r.loop(l.node, l.scope, v, l.depth+1) })
	})
	return t
}
