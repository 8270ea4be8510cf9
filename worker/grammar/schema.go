package grammar

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// schemaBuilder turns a JSON schema into rules.
type schemaBuilder struct {
	*jsonRules
	root any
	refs map[string]int // rules of what $ref names
	// depth of schemas within schemas, references not counted
	depth int
}

// buildSchema returns what a JSON schema allows.
func buildSchema(p *program, data []byte, compact bool) expr {
	b := &schemaBuilder{jsonRules: newJSONRules(p, compact), root: decodeSchema(data), refs: map[string]int{}}
	return b.schema(b.root, "#")
}

// ignored are the keywords that say nothing about which values are valid.
var ignored = []string{
	"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment", "$anchor",
	"$defs", "definitions", "contentEncoding", "contentMediaType", "strict", "x-order",
}

// byType are the keywords that concern one type only.
var byType = map[string][]string{
	"string":  {"minLength", "maxLength", "pattern", "format"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"array":   {"items", "prefixItems", "minItems", "maxItems", "additionalItems"},
	"object":  {"properties", "required", "additionalProperties", "propertyOrdering"},
}

// combining are the keywords that are looked at before the type.
var combining = []string{"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "nullable"}

// checkKeywords refuses a keyword that would be silently broken.
func checkKeywords(o *object, path string) {
	for _, k := range o.keys {
		known := slices.Contains(ignored, k) || slices.Contains(combining, k) || strings.HasPrefix(k, "x-")
		for _, ks := range byType {
			known = known || slices.Contains(ks, k)
		}
		if !known && !(k == "uniqueItems" && o.vals[k] == false) {
			failf("%s: the keyword %q is not supported", path, k)
		}
	}
}

// schema returns what a schema allows. path names it in errors.
func (b *schemaBuilder) schema(s any, path string) expr {
	b.p.spend(1)
	if b.depth++; b.depth > 4*maxSchemaDepth {
		failf("%s: the schema is nested too deep", path)
	}
	defer func() { b.depth-- }()
	switch s {
	case true:
		return b.value()
	case false:
		return altExpr{}
	}
	o, ok := s.(*object)
	if !ok {
		failf("%s is neither an object nor true or false", path)
	}
	checkKeywords(o, path)
	x := b.combined(o, path)
	if o.vals["nullable"] == true {
		return altExpr{x, bytesExpr("null")}
	}
	return x
}

func (b *schemaBuilder) combined(o *object, path string) expr {
	if ref, ok := o.vals["$ref"]; ok {
		b.alone(o, "$ref", path)
		return b.reference(ref, path)
	}
	if c, ok := o.vals["const"]; ok {
		return b.constants(o, []any{c}, path)
	}
	if e, ok := o.vals["enum"]; ok {
		list, ok := e.([]any)
		if !ok || len(list) == 0 {
			failf("%s/enum is not a list with values", path)
		}
		return b.constants(o, list, path)
	}
	if _, ok := o.vals["allOf"]; ok {
		return b.combined(b.merged(o, path), path)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		list, ok := o.vals[k]
		if !ok {
			continue
		}
		alts, ok := list.([]any)
		if !ok || len(alts) == 0 {
			failf("%s/%s is not a list with schemas", path, k)
		}
		if k == "oneOf" {
			b.checkDisjoint(alts, path)
		}
		return b.alternatives(o, k, alts, path)
	}
	return b.typed(o, path)
}

// alone refuses keywords beside one that stands for a whole schema.
func (b *schemaBuilder) alone(o *object, key, path string) {
	for _, k := range o.keys {
		if k != key && k != "nullable" && !slices.Contains(ignored, k) && !strings.HasPrefix(k, "x-") {
			failf("%s: %q beside %q is not supported", path, k, key)
		}
	}
}

// alternatives is anyOf and oneOf. What stands beside is merged into each.
func (b *schemaBuilder) alternatives(o *object, key string, list []any, path string) expr {
	beside := &object{vals: map[string]any{}}
	for _, k := range o.keys {
		if k != key && k != "nullable" && !slices.Contains(ignored, k) {
			beside.keys = append(beside.keys, k)
			beside.vals[k] = o.vals[k]
		}
	}
	var alts altExpr
	for i, s := range list {
		at := path + "/" + key + "/" + strconv.Itoa(i)
		if len(beside.keys) > 0 {
			s = b.merge(beside, b.resolved(s, at, 0), at)
		}
		alts = append(alts, b.schema(s, at))
	}
	return alts
}

// reference returns the rule of what a reference names. Schemas may refer to
// themselves.
func (b *schemaBuilder) reference(ref any, path string) expr {
	name, ok := ref.(string)
	if !ok {
		failf("%s/$ref is not a string", path)
	}
	if n, ok := b.refs[name]; ok {
		return ruleExpr(n)
	}
	target := b.find(name, path)
	n := b.p.newRule()
	b.refs[name] = n
	b.p.rules[n] = b.schema(target, name)
	return ruleExpr(n)
}

// find follows a reference such as #/$defs/node.
func (b *schemaBuilder) find(name, path string) any {
	if name != "#" && !strings.HasPrefix(name, "#/") {
		failf("%s/$ref is %q; only references within the schema, beginning with #, are supported", path, name)
	}
	at := b.root
	for _, part := range strings.Split(strings.TrimPrefix(name, "#"), "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~", "%24", "$").Replace(part)
		switch v := at.(type) {
		case *object:
			at = v.vals[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				failf("%s/$ref is %q, which names nothing", path, name)
			}
			at = v[i]
		}
	}
	if at == nil {
		failf("%s/$ref is %q, which names nothing", path, name)
	}
	return at
}

// resolved follows references until there is a schema.
func (b *schemaBuilder) resolved(s any, path string, depth int) *object {
	o, ok := s.(*object)
	if !ok || depth > maxSchemaDepth {
		failf("%s is no schema that can be combined with others", path)
	}
	if ref, ok := o.vals["$ref"].(string); ok {
		b.alone(o, "$ref", path)
		return b.resolved(b.find(ref, path), path, depth+1)
	}
	return o
}

// constants is const and enum. Values of another type than the schema's are
// left out.
func (b *schemaBuilder) constants(o *object, list []any, path string) expr {
	types := typesOf(o, path)
	var alts altExpr
	for _, v := range list {
		if len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return hasType(v, t) }) {
			continue
		}
		text := appendJSON(nil, v, ":", ",")
		b.p.spend(len(text))
		alts = append(alts, bytesExpr(text))
	}
	if len(alts) == 0 {
		failf("%s: no value of enum or const has the type that is asked for", path)
	}
	return alts
}

// hasType says whether a value has a type of JSON schema.
func hasType(v any, t string) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case json.Number:
		return t == "number" || t == "integer" && !strings.ContainsAny(v.String(), ".eE")
	case []any:
		return t == "array"
	case *object:
		return t == "object"
	}
	return false
}

// typesOf returns the types that a schema names, none if any will do.
func typesOf(o *object, path string) []string {
	known := []string{"string", "number", "integer", "boolean", "null", "array", "object"}
	var types []string
	switch t := o.vals["type"].(type) {
	case nil:
		return nil
	case string:
		types = []string{t}
	case []any:
		for _, x := range t {
			s, _ := x.(string)
			types = append(types, s)
		}
	}
	for _, t := range types {
		if !slices.Contains(known, t) {
			failf("%s/type is %q; known are %s", path, t, strings.Join(known, ", "))
		}
	}
	if len(types) == 0 {
		failf("%s/type is neither a string nor a list of strings", path)
	}
	return types
}

// typed is a schema that is no combination.
func (b *schemaBuilder) typed(o *object, path string) expr {
	types := typesOf(o, path)
	if types == nil {
		types = impliedTypes(o)
	}
	if types == nil {
		return b.value()
	}
	var alts altExpr
	for _, t := range types {
		alts = append(alts, b.one(o, t, path))
	}
	return alts
}

// impliedTypes returns the type that a schema without one means: that of its
// keywords.
func impliedTypes(o *object) []string {
	for _, t := range []string{"object", "array", "string", "integer"} {
		for _, k := range byType[t] {
			if _, ok := o.vals[k]; ok {
				if t == "integer" {
					t = "number"
				}
				return []string{t}
			}
		}
	}
	return nil
}

func (b *schemaBuilder) one(o *object, t, path string) expr {
	switch t {
	case "string":
		return b.stringSchema(o, path)
	case "integer", "number":
		return b.numberSchema(o, t == "integer", path)
	case "boolean":
		return b.boolean()
	case "null":
		return bytesExpr("null")
	case "array":
		return b.arraySchema(o, path)
	}
	return b.objectSchema(o, path)
}

// count reads a keyword that is a number of things.
func count(o *object, key string, absent int, path string) int {
	v, ok := o.vals[key]
	if !ok {
		return absent
	}
	n, _ := v.(json.Number)
	i, err := strconv.Atoi(strings.TrimSuffix(n.String(), ".0"))
	if err != nil || i < 0 {
		failf("%s/%s is not a whole number from 0", path, key)
	}
	if i > maxParts {
		panic(specError{&LimitError{path + "/" + key + " is " + n.String()}})
	}
	return i
}
