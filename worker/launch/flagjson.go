package launch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// object takes JSON for a flag, or a value for one of its fields: both forms,
// in any order, are one object.
func (p *flagParser) object(spec *flagSpec, field, v string) error {
	p.note(spec)
	var given any
	switch {
	case field != "":
		given = nested(field, v)
	case v != "" && v != "None":
		if err := decodeJSON(v, &given); err != nil {
			return fmt.Errorf("--%s: %.80q is not JSON: %w", spec.name, v, err)
		}
	}
	if !slices.ContainsFunc(p.order, func(s flagSpec) bool { return s.name == spec.name }) {
		p.order = append(p.order, *spec)
	}
	p.objects[spec.name] = merged(p.objects[spec.name], given)
	return nil
}

// nested is the object in which a path of fields has a value. Behind a path
// that ends with + stand elements of a list, with commas between.
func nested(path, v string) any {
	var value any = v
	if rest, ok := strings.CutSuffix(path, "+"); ok {
		var list []any
		for one := range strings.SplitSeq(v, ",") {
			list = append(list, one)
		}
		path, value = rest, list
	} else if decodeJSON(v, &value) != nil {
		value = v
		if n, err := count(v); err == nil {
			value = n
		}
	}
	fields := strings.Split(path, ".")
	for _, f := range slices.Backward(fields) {
		value = map[string]any{f: value}
	}
	return value
}

// merged adds what was said later to what was said before.
func merged(before, later any) any {
	b, ok := before.(map[string]any)
	l, too := later.(map[string]any)
	if ok && too {
		for k, v := range l {
			b[k] = merged(b[k], v)
		}
		return b
	}
	if b, ok := before.([]any); ok {
		if l, ok := later.([]any); ok {
			return append(b, l...)
		}
	}
	return later
}

// setObject gives a flag the JSON that was collected for it.
func (p *flagParser) setObject(spec *flagSpec) error {
	text, err := json.Marshal(p.objects[spec.name])
	if err != nil {
		return fmt.Errorf("--%s: %w", spec.name, err)
	}
	if string(text) == "null" {
		return nil
	}
	return p.values(spec, []string{string(text)})
}

// decodeJSON reads JSON with its numbers as they are written.
func decodeJSON(v string, into *any) error {
	d := json.NewDecoder(strings.NewReader(v))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more follows it")
	}
	return nil
}
