package supervisor

import (
	"reflect"
	"slices"
	"strings"

	"roundhouse/configs"
)

// setting is where a value stands: the names of what holds it, from the top. A name
// may have dots.
type setting []string

func (s setting) String() string { return strings.Join(s, ".") }

// below is what s holds under a name.
func (s setting) below(name string) setting { return append(slices.Clip(s), name) }

// changed lists the settings that differ between two configurations, by their
// path, without their values: some are secret. They are compared as they are
// and not as they print, so that a new secret is a change.
func changed(old, next *configs.Config) []setting {
	var out []setting
	compare(&out, nil, reflect.ValueOf(old).Elem(), reflect.ValueOf(next).Elem())
	slices.SortFunc(out, func(a, b setting) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(out, func(a, b setting) bool { return a.String() == b.String() })
}

func compare(out *[]setting, at setting, a, b reflect.Value) {
	differs := func() { *out = append(*out, at) }
	switch a.Kind() {
	case reflect.Pointer:
		switch {
		case a.IsNil() && b.IsNil():
		case a.IsNil() || b.IsNil():
			differs()
		default:
			compare(out, at, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if name, shown := fieldName(a.Type().Field(i)); shown {
				compare(out, at.below(name), a.Field(i), b.Field(i))
			}
		}
	case reflect.Map:
		compareKeyed(out, at, byKey(a), byKey(b))
	case reflect.Slice:
		elem := a.Type().Elem()
		if elem.Kind() == reflect.Struct {
			if _, named := elem.FieldByName("Name"); named {
				compareKeyed(out, at, byName(a), byName(b))
				return
			}
		}
		if a.Len()+b.Len() > 0 && !reflect.DeepEqual(a.Interface(), b.Interface()) {
			differs()
		}
	default:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			differs()
		}
	}
}

// fieldName is what a setting is called in the file; some fields are none.
func fieldName(f reflect.StructField) (name string, shown bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = f.Name
	}
	return name, f.IsExported() && name != "-"
}

func compareKeyed(out *[]setting, at setting, a, b map[string]reflect.Value) {
	for k, va := range a {
		if vb, ok := b[k]; ok {
			compare(out, at.below(k), va, vb)
		} else {
			*out = append(*out, at.below(k))
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			*out = append(*out, at.below(k))
		}
	}
}

func byKey(m reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for _, k := range m.MapKeys() {
		out[k.String()] = m.MapIndex(k)
	}
	return out
}

func byName(list reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range list.Len() {
		out[list.Index(i).FieldByName("Name").String()] = list.Index(i)
	}
	return out
}
