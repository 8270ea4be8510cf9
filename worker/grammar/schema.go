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
	"$defs", "definitions", "contentEncoding", "contentMediaType", "contentSchema", "strict", "x-order",
	"discriminator", "externalDocs", "xml", "$dynamicAnchor", "$vocabulary", "id",
}

// byType are the keywords that concern one type only.
var byType = map[string][]string{
	"string":  {"minLength", "maxLength", "pattern", "format"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"array":   {"items", "prefixItems", "minItems", "maxItems", "additionalItems", "uniqueItems"},
	"object": {"properties", "required", "additionalProperties", "propertyOrdering", "patternProperties", "propertyNames", "minProperties",
		"maxProperties", "dependentRequired", "dependentSchemas"},
}

// combining are the keywords that are looked at before the type.
var combining = []string{"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "nullable", "not", "if", "then", "else", conditions}

// refused are the keywords that say which values are valid and cannot be held
// to in any of their forms. A keyword that is not known says nothing, as the
// standard has it.
var refused = []string{"contains", "minContains", "maxContains", "unevaluatedItems", "$dynamicRef", "$recursiveRef"}

// checkKeywords refuses a keyword that would be silently broken.
func checkKeywords(o *object, path string) {
	for _, k := range o.keys {
		if slices.Contains(refused, k) {
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
	if b.never(o) {
		return altExpr{}
	}
	x := b.combined(o, path)
	if o.vals["nullable"] == true {
		return altExpr{x, bytesExpr("null")}
	}
	return x
}

func (b *schemaBuilder) combined(o *object, path string) expr {
	if ref, ok := o.vals["$ref"]; ok {
		beside := o.without("$ref", "nullable")
		if len(beside.keys) == 0 {
			return b.reference(ref, path)
		}
		return b.schema(b.merge(beside, b.resolved(o.only("$ref"), path, 0), path), path)
	}
	if x, ok := b.conditional(o, path); ok {
		return x
	}
	if _, ok := o.vals["enum"]; ok {
		if list, ok := o.vals["enum"].([]any); !ok || len(list) == 0 {
			failf("%s/enum is not a list with values", path)
		}
	}
	if list, ok := listed(o); ok {
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
		return b.alternatives(o, k, alts, path)
	}
	return b.typed(o, path)
}

// without is an object without some keys and those that say nothing.
func (o *object) without(keys ...string) *object {
	out := &object{vals: map[string]any{}}
	for _, k := range o.keys {
		if !slices.Contains(keys, k) && !slices.Contains(ignored, k) {
			out.set(k, o.vals[k])
		}
	}
	return out
}

// only is an object with one key.
func (o *object) only(key string) *object {
	return &object{keys: []string{key}, vals: map[string]any{key: o.vals[key]}}
}

// set gives a key a value.
func (o *object) set(key string, v any) {
	if _, ok := o.vals[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.vals[key] = v
}

// alternatives is anyOf and oneOf. What stands beside is merged into each.
func (b *schemaBuilder) alternatives(o *object, key string, list []any, path string) expr {
	beside := o.without(key, "nullable")
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
	if !strings.HasPrefix(name, "#") {
		return true // another document, which is not fetched
	}
	if name != "#" && !strings.HasPrefix(name, "#/") {
		failf("%s/$ref is %q; of references within the schema only paths, beginning with #/, are supported", path, name)
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
	if s == true {
		return &object{vals: map[string]any{}}
	}
	o, ok := s.(*object)
	if !ok || depth > maxSchemaDepth {
		failf("%s is no schema that can be combined with others", path)
	}
	if ref, ok := o.vals["$ref"].(string); ok {
		target := b.resolved(b.find(ref, path), path, depth+1)
		if beside := o.without("$ref"); len(beside.keys) > 0 {
			return b.merge(target, beside, path)
		}
		return target
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
		if b.excluded(o, v) {
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

// hasType reports whether a value has a type of JSON schema.
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
	types = b.allowedTypes(o, types, path)
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
	return b.dependent(o, path)
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
