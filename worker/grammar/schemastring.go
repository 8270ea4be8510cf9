package grammar

// date is a day that every year has.
const date = `\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))`

// formats are the formats that are held to; others are notes, as the
// standard has it.
var formats = map[string]string{
	"date":      "^" + date + "$",
	"time":      `^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`,
	"date-time": "^" + date + `T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`,
	"uuid":      `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`,
	"ipv4":      `^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$`,
	"email":     `^[a-z0-9_+-]{1,32}(\.[a-z0-9_+-]{1,32}){0,3}@[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(\.[a-z]{2,12}){1,3}$`,
}

// stringSchema is a string with a length, a pattern or a format.
func (b *schemaBuilder) stringSchema(o *object, path string) expr {
	least := count(o, "minLength", 0, path)
	most := count(o, "maxLength", -1, path)
	if most >= 0 && most < least {
		failf("%s: maxLength is %d and minLength %d", path, most, least)
	}
	source, hasPattern := o.vals["pattern"].(string)
	if _, given := o.vals["pattern"]; given && !hasPattern {
		failf("%s/pattern is not a string", path)
	}
	if f, ok := o.vals["format"].(string); ok && !hasPattern && formats[f] != "" {
		source, hasPattern = formats[f], true
	}
	bounded := least > 0 || most >= 0
	denied := b.deniedStrings(o, path)
	switch {
	case hasPattern && !bounded && denied == nil:
		r := &regexBuilder{p: b.p, what: path + "/pattern", char: jsonChar}
		return b.rule("pattern "+source, func() expr {
			return seqExpr{bytesExpr(`"`), r.build(source, true), bytesExpr(`"`)}
		})
	case hasPattern || denied != nil:
		l := b.stringLanguage(source, hasPattern, least, most, path)
		for _, d := range denied {
			l = both(b.p, l, d, false, path)
		}
		return l.quoted(b.p)
	case !bounded:
		return b.anyString()
	}
	// Escapes by number would count differently, so these strings have none.
	char := jsonChar([]rune{0, 0x10FFFF})
	b.p.spend(20 * max(least, most))
	return seqExpr{bytesExpr(`"`), repExpr{char, least, most}, bytesExpr(`"`)}
}

// stringLanguage is the strings of a pattern and a length.
func (b *schemaBuilder) stringLanguage(source string, has bool, least, most int, path string) *language {
	bounded := least > 0 || most >= 0
	switch {
	case !has:
		return lengths(b.p, least, most, path)
	case !bounded:
		return pattern(b.p, source, path+"/pattern")
	}
	return both(b.p, lengths(b.p, least, most, path), pattern(b.p, source, path+"/pattern"), true, path+"/pattern with its length")
}
