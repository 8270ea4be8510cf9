package template

import "fmt"

// dict is a Python dict: it keeps the order in which keys were first set.
type dict struct {
	entries []entry
	index   map[string]int
}

type entry struct{ key, val value }

func newDict() *dict { return &dict{index: map[string]int{}} }

func (d *dict) len() int { return len(d.entries) }

// hashKey returns what equal keys have in common, and false for values that
// cannot be keys.
func hashKey(k value) (string, bool) {
	switch k := k.(type) {
	case text:
		return "s" + k.s, true
	case nil:
		return "none", true
	case *tuple:
		all := "t"
		for _, it := range k.items {
			h, ok := hashKey(it)
			if !ok {
				return "", false
			}
			all += fmt.Sprintf("%d:%s", len(h), h)
		}
		return all, true
	}
	if i, f, isInt, ok := number(k); ok {
		if isInt {
			return fmt.Sprintf("i%d", i), true
		}
		if f == float64(int64(f)) {
			return fmt.Sprintf("i%d", int64(f)), true
		}
		return fmt.Sprintf("f%v", f), true
	}
	return "", false
}

// get returns the value of a key.
func (d *dict) get(k value) (value, bool) {
	h, ok := hashKey(k)
	if !ok {
		return nil, false
	}
	i, ok := d.index[h]
	if !ok {
		return nil, false
	}
	return d.entries[i].val, true
}

// getName returns the value of a key that is a string.
func (d *dict) getName(name string) (value, bool) {
	i, ok := d.index["s"+name]
	if !ok {
		return nil, false
	}
	return d.entries[i].val, true
}

// set sets a key; it reports false for a value that cannot be one.
func (d *dict) set(k, v value) bool {
	h, ok := hashKey(k)
	if !ok {
		return false
	}
	if i, ok := d.index[h]; ok {
		d.entries[i].val = v
		return true
	}
	d.index[h] = len(d.entries)
	d.entries = append(d.entries, entry{k, v})
	return true
}

func (d *dict) setName(name string, v value) { d.set(literal(name), v) }

func (d *dict) equal(o *dict) bool {
	if d.len() != o.len() {
		return false
	}
	for _, e := range d.entries {
		if v, ok := o.get(e.key); !ok || !equal(e.val, v) {
			return false
		}
	}
	return true
}

func (d *dict) keys() []value {
	out := make([]value, len(d.entries))
	for i, e := range d.entries {
		out[i] = e.key
	}
	return out
}

func (d *dict) values() []value {
	out := make([]value, len(d.entries))
	for i, e := range d.entries {
		out[i] = e.val
	}
	return out
}

func (d *dict) items() []value {
	out := make([]value, len(d.entries))
	for i, e := range d.entries {
		out[i] = &tuple{items: []value{e.key, e.val}}
	}
	return out
}
