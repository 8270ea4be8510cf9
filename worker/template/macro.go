package template

// macro is a macro with the scope that it was defined in.
type macro struct {
	def   *macroDef
	scope *scope
}

func (n *macroNode) run(_ *renderer, e *scope) {
	e.vars[n.def.name] = &macro{n.def, e}
}

func (n *callNode) run(r *renderer, e *scope) {
	r.line = n.line
	args := r.arguments(n.call.args, e)
	args.names = append(args.names, "caller")
	args.named = append(args.named, &macro{n.caller, e})
	r.write(r.str(r.invoke(n.call.fn.eval(r, e), args)))
}

// run calls a macro and returns what it prints.
func (m *macro) run(r *renderer, a *arguments) value {
	d := m.def
	e := m.scope.inner()
	if len(a.positional) > len(d.params) && !d.usesVarargs {
		r.fail("macro '%s' takes not more than %d argument(s)", d.name, len(d.params))
	}
	given := map[string]bool{}
	for i, name := range d.params {
		if i < len(a.positional) {
			e.vars[name] = a.positional[i]
			given[name] = true
		}
	}
	extra := newDict()
	for i, name := range a.names {
		if given[name] {
			r.fail("macro '%s' got multiple values for argument '%s'", d.name, name)
		}
		if name == "caller" {
			e.vars[name] = a.named[i]
			continue
		}
		if !m.hasParam(name) {
			if !d.usesKwargs {
				r.fail("macro '%s' takes no keyword argument '%s'", d.name, name)
			}
			extra.setName(name, a.named[i])
			continue
		}
		given[name] = true
		e.vars[name] = a.named[i]
	}
	if d.usesVarargs {
		e.vars["varargs"] = &tuple{items: a.positional[min(len(d.params), len(a.positional)):]}
	}
	if d.usesKwargs {
		e.vars["kwargs"] = extra
	}
	return m.print(r, e, given)
}

func (m *macro) hasParam(name string) bool {
	for _, p := range m.def.params {
		if p == name {
			return true
		}
	}
	return false
}

// print fills in the defaults and runs the body.
func (m *macro) print(r *renderer, e *scope, given map[string]bool) value {
	d := m.def
	var t text
	r.call(func() {
		for i, name := range d.params {
			if given[name] {
				continue
			}
			e.vars[name] = undefinedf("parameter '%s' was not provided", name)
			if j := i - (len(d.params) - len(d.defaults)); j >= 0 {
				e.vars[name] = d.defaults[j].eval(r, e)
			}
		}
		t = r.capture(func() { r.body(d.body, e) })
	})
	return t
}
