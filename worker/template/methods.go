package template

// method makes a function value of a method.
func method(name string, call func(r *renderer, a *arguments) value) value {
	return &function{name, call}
}

// itemsMethod returns a method of a list or tuple, nil if there is none. The
// methods that would change a list fail, as in the sandbox of transformers.
func (r *renderer) itemsMethod(items []value, name string) value {
	switch name {
	case "index":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "value")
			if p[0] == nil {
				r.fail("index needs a value")
			}
			for i, it := range items {
				r.step(1)
				if equal(it, *p[0]) {
					return int64(i)
				}
			}
			r.fail("%s is not in list", r.repr(*p[0]).s)
			return nil
		})
	case "count":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "value")
			n := int64(0)
			for _, it := range items {
				r.step(1)
				if p[0] != nil && equal(it, *p[0]) {
					n++
				}
			}
			return n
		})
	case "copy":
		return method(name, func(r *renderer, _ *arguments) value { return &list{r.joinItems(items, nil)} })
	case "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort":
		r.fail("access to attribute '%s' of 'list' object is unsafe.", name)
	}
	return nil
}

// dictMethod returns a method of a dict, nil if there is none.
func (r *renderer) dictMethod(d *dict, name string) value {
	switch name {
	case "keys":
		return method(name, func(r *renderer, _ *arguments) value { return r.listOf(d.keys()) })
	case "values":
		return method(name, func(r *renderer, _ *arguments) value { return r.listOf(d.values()) })
	case "items":
		return method(name, func(r *renderer, _ *arguments) value { return r.listOf(d.items()) })
	case "copy":
		return method(name, func(r *renderer, _ *arguments) value {
			return r.newDictOf(&arguments{positional: []value{d}})
		})
	case "get":
		return method(name, func(r *renderer, a *arguments) value {
			p := r.bind(name, a, "key", "default")
			if p[0] == nil {
				r.fail("get needs a key")
			}
			if v, ok := d.get(*p[0]); ok {
				return v
			}
			if p[1] != nil {
				return *p[1]
			}
			return nil
		})
	case "clear", "pop", "popitem", "setdefault", "update":
		r.fail("access to attribute '%s' of 'dict' object is unsafe.", name)
	}
	return nil
}

func (r *renderer) listOf(items []value) value {
	r.step(len(items))
	return &list{items}
}
