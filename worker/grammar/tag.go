package grammar

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// tagBuilder turns a structural tag into rules. ends are the texts that end
// the tag around: no free text within it has them.
type tagBuilder struct {
	p       *program
	compact bool
	ends    []string
}

// buildTag returns what a structural tag allows: {"format": …}, or in the old
// form {"structures": […], "triggers": […]}.
func buildTag(p *program, data []byte, compact bool) expr {
	o, ok := decodeSchema(data).(*object)
	if !ok {
		failf("the structural tag is not an object")
	}
	if t, given := o.vals["type"]; given && t != "structural_tag" {
		failf("the structural tag's type is not %q", "structural_tag")
	}
	b := &tagBuilder{p: p, compact: compact}
	if _, old := o.vals["structures"]; old {
		return b.structures(o)
	}
	format, ok := o.vals["format"]
	if !ok {
		failf("the structural tag has neither format nor structures")
	}
	return b.format(format, "format")
}

// structures is the old form: tags with a schema each, and their triggers.
func (b *tagBuilder) structures(o *object) expr {
	list, _ := o.vals["structures"].([]any)
	var tags []any
	for i, s := range list {
		path := "structures/" + strconv.Itoa(i)
		item := asObject(s, path)
		schema := item.vals["schema"]
		if schema == nil {
			failf("%s has no schema", path)
		}
		content := &object{vals: map[string]any{}}
		content.set("type", "json_schema")
		content.set("json_schema", schema)
		tag := &object{vals: map[string]any{}}
		tag.set("type", "tag")
		tag.set("begin", item.vals["begin"])
		tag.set("content", content)
		tag.set("end", item.vals["end"])
		tags = append(tags, tag)
	}
	format := &object{vals: map[string]any{}}
	format.set("triggers", o.vals["triggers"])
	format.set("tags", tags)
	return b.triggered(format, "structures")
}

func asObject(v any, path string) *object {
	o, ok := v.(*object)
	if !ok {
		failf("%s is not an object", path)
	}
	return o
}

// format returns what one format allows. path names it in errors.
func (b *tagBuilder) format(v any, path string) expr {
	b.p.spend(1)
	o := asObject(v, path)
	switch t, _ := o.vals["type"].(string); t {
	case "const_string":
		return b.text(o, "value", path)
	case "json_schema":
		return b.schema(o, path)
	case "regex":
		r := &regexBuilder{p: b.p, what: path + "/pattern", char: runeRanges}
		return r.build(str(o, "pattern", path), false)
	case "grammar":
		return buildEBNF(b.p, str(o, "grammar", path))
	case "any_text":
		return b.anyText(o, path)
	case "sequence":
		var seq seqExpr
		for i, e := range items(o, "elements", path) {
			seq = append(seq, b.format(e, path+"/elements/"+strconv.Itoa(i)))
		}
		return seq
	case "or":
		var alts altExpr
		for i, e := range items(o, "elements", path) {
			alts = append(alts, b.format(e, path+"/elements/"+strconv.Itoa(i)))
		}
		return alts
	case "tag":
		return seqExpr{b.text(o, "begin", path), b.rest(o, path)}
	case "triggered_tags":
		return b.triggered(o, path)
	case "tags_with_separator":
		return b.separated(o, path)
	case "optional", "star", "plus", "repeat":
		return b.repeated(o, t, path)
	case "dispatch":
		return b.dispatch(o, path)
	default:
		failf("%s/type is %q; supported are const_string, json_schema, regex, grammar, any_text, sequence, or, tag, triggered_tags, "+
			"tags_with_separator, optional, star, plus, repeat and dispatch", path, t)
		return nil
	}
}

func (b *tagBuilder) text(o *object, key, path string) expr {
	s := str(o, key, path)
	b.p.spend(len(s))
	return bytesExpr(s)
}

func (b *tagBuilder) schema(o *object, path string) expr {
	if style, ok := o.vals["style"]; ok && style != "json" {
		failf("%s/style is %v; only \"json\" is supported", path, style)
	}
	if flag(o, "any_order", path) {
		failf("%s/any_order is not supported; properties come in the schema's order", path)
	}
	if len(strs(o, "excludes", path)) > 0 {
		failf("%s/excludes is not supported; give the schema's strings a pattern", path)
	}
	compact := b.compact
	if n := number(o, "max_whitespace_cnt", -1, path); n == 0 {
		failf("%s/max_whitespace_cnt is not above 0", path)
	} else if n > 0 {
		compact = true // no more than one space
	}
	s, ok := o.vals["json_schema"]
	if !ok {
		failf("%s has no json_schema", path)
	}
	sb := &schemaBuilder{jsonRules: newJSONRules(b.p, compact), root: s, refs: map[string]int{}}
	return sb.schema(s, path+"/json_schema")
}

// anyText is any text without what is excluded.
func (b *tagBuilder) anyText(o *object, path string) expr {
	excludes := append(strs(o, "excludes", path), b.ends...)
	if _, ok := o.vals["max_tokens"].(json.Number); ok {
		failf("%s/max_tokens is not supported; use max_chars", path)
	}
	most := number(o, "max_chars", -1, path)
	if len(excludes) == 0 {
		return repExpr{runeRanges([]rune{0, unicode.MaxRune}), 0, b.spent(most)}
	}
	if most < 0 {
		return freeText(b.p, nil, excludes, true)
	}
	l, _ := watched(b.p, nil, excludes)
	l = both(b.p, lengths(b.p, 0, most, path), l, true, path+" with its max_chars")
	n := b.p.newRule()
	b.p.rules[n] = l.graph(b.p, runeRanges)
	return ruleExpr(n)
}

// spent counts the rounds of a repetition.
func (b *tagBuilder) spent(rounds int) int {
	b.p.spend(20 * max(rounds, 0))
	return rounds
}

// rest is a tag behind its begin.
func (b *tagBuilder) rest(o *object, path string) expr {
	ends := []string{""}
	if _, single := o.vals["end"].(string); single {
		ends[0] = str(o, "end", path)
	} else if ends = strs(o, "end", path); len(ends) == 0 {
		failf("%s/end is neither a text nor a list of texts; tokens are not supported", path)
	}
	around := b.ends
	b.ends = slices.DeleteFunc(slices.Clone(ends), func(s string) bool { return s == "" })
	if len(b.ends) == 0 && unlimited(o.vals["content"]) {
		failf("%s/end has no text, and what it ends may go on for ever", path)
	}
	content := b.format(o.vals["content"], path+"/content")
	b.ends = around
	var alts altExpr
	for _, e := range ends {
		b.p.spend(len(e))
		alts = append(alts, bytesExpr(e))
	}
	return seqExpr{content, alts}
}

// unlimited reports whether a format ends in free text.
func unlimited(v any) bool {
	o, ok := v.(*object)
	if !ok {
		return false
	}
	elements, _ := o.vals["elements"].([]any)
	switch o.vals["type"] {
	case "any_text":
		return true
	case "triggered_tags":
		return o.vals["stop_after_first"] != true
	case "sequence":
		return len(elements) > 0 && unlimited(elements[len(elements)-1])
	case "or":
		return slices.ContainsFunc(elements, unlimited)
	case "optional", "star", "plus", "repeat":
		return unlimited(o.vals["content"])
	}
	return false
}

// str reads a text.
func str(o *object, key, path string) string {
	s, ok := o.vals[key].(string)
	if !ok || strings.ToValidUTF8(s, "") != s {
		failf("%s/%s is not a text", path, key)
	}
	return s
}

// strs reads a list of texts; absent, it is empty.
func strs(o *object, key, path string) []string {
	v, ok := o.vals[key]
	if !ok || v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		failf("%s/%s is not a list of texts", path, key)
	}
	var out []string
	for _, item := range list {
		s, ok := item.(string)
		if !ok || s == "" && key != "end" {
			failf("%s/%s has an item that is no text, or empty", path, key)
		}
		out = append(out, s)
	}
	return out
}

// items reads a list with items.
func items(o *object, key, path string) []any {
	list, _ := o.vals[key].([]any)
	if len(list) == 0 {
		failf("%s/%s is not a list with items", path, key)
	}
	return list
}

func flag(o *object, key, path string) bool {
	v, ok := o.vals[key]
	if _, is := v.(bool); ok && !is {
		failf("%s/%s is neither true nor false", path, key)
	}
	return v == true
}

// number reads a whole number; null is as if absent.
func number(o *object, key string, absent int, path string) int {
	if v, ok := o.vals[key]; !ok || v == nil {
		return absent
	}
	return count(o, key, absent, path)
}
