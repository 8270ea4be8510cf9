package grammartest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Valid checks a text against a schema.
func Valid(schema []byte, text string) error {
	decode := func(data []byte) (any, error) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var x any
		err := d.Decode(&x)
		if err == nil && d.More() {
			err = errors.New("more than one value")
		}
		return x, err
	}
	s, err := decode(schema)
	if err != nil {
		return err
	}
	x, err := decode([]byte(text))
	if err != nil {
		return err
	}
	root, _ := s.(map[string]any)
	return validator{root}.check(s, x)
}

// validator checks a value against a schema, straight from the standard. It
// shares no code with the compiler.
type validator struct{ root map[string]any }

func (v validator) check(s any, x any) error {
	if s == true {
		return nil
	}
	if s == false {
		return fmt.Errorf("nothing is allowed")
	}
	o := s.(map[string]any)
	if ref, ok := o["$ref"].(string); ok {
		var at any = v.root
		for _, p := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
			at = at.(map[string]any)[p]
		}
		return v.check(at, x)
	}
	if n, ok := o["nullable"]; ok && n == true && x == nil {
		return nil
	}
	if err := v.combinations(o, x); err != nil {
		return err
	}
	if err := checkType(o, x); err != nil {
		return err
	}
	switch x := x.(type) {
	case string:
		return checkString(o, x)
	case json.Number:
		return checkNumber(o, x)
	case []any:
		return v.array(o, x)
	case map[string]any:
		return v.object(o, x)
	}
	return nil
}

func (v validator) combinations(o map[string]any, x any) error {
	count := func(list any) int {
		n := 0
		for _, s := range list.([]any) {
			if v.check(s, x) == nil {
				n++
			}
		}
		return n
	}
	if l, ok := o["anyOf"]; ok && count(l) == 0 {
		return fmt.Errorf("anyOf fails for %v", x)
	}
	if l, ok := o["oneOf"]; ok && count(l) != 1 {
		return fmt.Errorf("oneOf fails for %v", x)
	}
	if l, ok := o["allOf"]; ok && count(l) != len(l.([]any)) {
		return fmt.Errorf("allOf fails for %v", x)
	}
	if c, ok := o["const"]; ok && fmt.Sprint(c) != fmt.Sprint(x) {
		return fmt.Errorf("%v is not %v", x, c)
	}
	if e, ok := o["enum"]; ok && !slices.ContainsFunc(e.([]any), func(c any) bool { return fmt.Sprint(c) == fmt.Sprint(x) }) {
		return fmt.Errorf("%v is not in %v", x, e)
	}
	return nil
}

func checkType(o map[string]any, x any) error {
	t, ok := o["type"]
	if !ok {
		return nil
	}
	list, ok := t.([]any)
	if !ok {
		list = []any{t}
	}
	for _, t := range list {
		is := false
		switch x := x.(type) {
		case nil:
			is = t == "null"
		case bool:
			is = t == "boolean"
		case string:
			is = t == "string"
		case []any:
			is = t == "array"
		case map[string]any:
			is = t == "object"
		case json.Number:
			r, _ := new(big.Rat).SetString(x.String())
			is = t == "number" || t == "integer" && r.IsInt()
		}
		if is {
			return nil
		}
	}
	return fmt.Errorf("%v has not the type %v", x, t)
}

func numberOf(v any) *big.Rat {
	r, _ := new(big.Rat).SetString(v.(json.Number).String())
	return r
}

func checkNumber(o map[string]any, x json.Number) error {
	r := numberOf(x)
	for key, ok := range map[string]func(c int) bool{
		"minimum": func(c int) bool { return c >= 0 }, "exclusiveMinimum": func(c int) bool { return c > 0 },
		"maximum": func(c int) bool { return c <= 0 }, "exclusiveMaximum": func(c int) bool { return c < 0 },
	} {
		if b, given := o[key]; given && !ok(r.Cmp(numberOf(b))) {
			return fmt.Errorf("%s breaks %s %v", x, key, b)
		}
	}
	if m, ok := o["multipleOf"]; ok && !new(big.Rat).Quo(r, numberOf(m)).IsInt() {
		return fmt.Errorf("%s is no multiple of %v", x, m)
	}
	if f, err := x.Float64(); err != nil || math.IsInf(f, 0) {
		return fmt.Errorf("%s is no float64", x)
	}
	return nil
}

func whole(v any) int {
	n, _ := v.(json.Number).Int64()
	return int(n)
}

func checkString(o map[string]any, x string) error {
	n := utf8.RuneCountInString(x)
	if m, ok := o["minLength"]; ok && n < whole(m) {
		return fmt.Errorf("%q is shorter than %v", x, m)
	}
	if m, ok := o["maxLength"]; ok && n > whole(m) {
		return fmt.Errorf("%q is longer than %v", x, m)
	}
	if p, ok := o["pattern"]; ok && !regexp.MustCompile(p.(string)).MatchString(x) {
		return fmt.Errorf("%q does not match %v", x, p)
	}
	return nil
}

func (v validator) array(o map[string]any, x []any) error {
	if m, ok := o["minItems"]; ok && len(x) < whole(m) {
		return fmt.Errorf("%v has fewer items than %v", x, m)
	}
	if m, ok := o["maxItems"]; ok && len(x) > whole(m) {
		return fmt.Errorf("%v has more items than %v", x, m)
	}
	prefix, _ := o["prefixItems"].([]any)
	for i, it := range x {
		s := any(true)
		if i < len(prefix) {
			s = prefix[i]
		} else if rest, ok := o["items"]; ok {
			s = rest
		}
		if err := v.check(s, it); err != nil {
			return err
		}
	}
	return nil
}

func (v validator) object(o map[string]any, x map[string]any) error {
	required, _ := o["required"].([]any)
	for _, r := range required {
		if _, ok := x[r.(string)]; !ok {
			return fmt.Errorf("%v is missing", r)
		}
	}
	props, _ := o["properties"].(map[string]any)
	for k, val := range x {
		s, ok := props[k]
		if !ok {
			if s, ok = o["additionalProperties"]; !ok {
				s = true
			}
		}
		if err := v.check(s, val); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	return nil
}
