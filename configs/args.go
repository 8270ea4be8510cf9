package configs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Flag is a flag of an engine with its value.
type Flag struct{ Name, Value string }

// SetArgs returns a configuration in which a pool's engine is started with some flags: in
// place of their values where args has them, behind the others where not. Nothing else of
// the text changes but its columns.
func SetArgs(file string, src []byte, pool string, flags []Flag) ([]byte, error) {
	d := &decoder{file: file, src: src}
	body := d.parse()
	if len(d.diags) > 0 {
		return nil, d.diags
	}
	var engine, in *hclsyntax.Block
	for _, b := range body.Blocks {
		if b.Type == "pool" && len(b.Labels) == 1 && b.Labels[0] == pool {
			in = b
		}
	}
	if in == nil {
		return nil, fmt.Errorf("%s has no pool %q", file, pool)
	}
	for _, b := range in.Body.Blocks {
		if b.Type == "engine" {
			engine = b
		}
	}
	var text string
	at := 0
	switch {
	case engine == nil:
		at = in.OpenBraceRange.End.Byte
		text = "\n  engine {\n    args = [" + written(flags) + "]\n  }\n"
	case engine.Body.Attributes["args"] == nil:
		at = engine.OpenBraceRange.End.Byte
		text = "\n    args = [" + written(flags) + "]"
		if engine.OpenBraceRange.Start.Line == engine.CloseBraceRange.Start.Line {
			text += "\n"
		}
	default:
		list, ok := engine.Body.Attributes["args"].Expr.(*hclsyntax.TupleConsExpr)
		if !ok {
			return nil, fmt.Errorf("%s: engine.args of pool %q is no list in brackets: set %s there by hand", file, pool, written(flags))
		}
		return edited(file, src, list, flags)
	}
	return Format(file, slices.Concat(src[:at], []byte(text), src[at:]))
}

// written is flags as elements of a list.
func written(flags []Flag) string {
	var parts []string
	for _, f := range flags {
		parts = append(parts, strconv.Quote("--"+f.Name), strconv.Quote(f.Value))
	}
	return strings.Join(parts, ", ")
}

// edited is src with flags put into a list of arguments.
func edited(file string, src []byte, list *hclsyntax.TupleConsExpr, flags []Flag) ([]byte, error) {
	type change struct {
		at, end int
		text    string
	}
	var changes []change
	var fresh []Flag
	for _, f := range flags {
		found := false
		for i, e := range list.Exprs {
			said, ok := plainString(e)
			name, _, joined := strings.Cut(said, "=")
			if !ok || strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-") != f.Name || !strings.HasPrefix(name, "--") {
				continue
			}
			r := e.Range()
			switch {
			case joined:
				changes = append(changes, change{r.Start.Byte, r.End.Byte, strconv.Quote(name + "=" + f.Value)})
			case i+1 < len(list.Exprs):
				r = list.Exprs[i+1].Range()
				changes = append(changes, change{r.Start.Byte, r.End.Byte, strconv.Quote(f.Value)})
			default:
				return nil, fmt.Errorf("%s:%d: %s has no value", file, r.Start.Line, name)
			}
			found = true
		}
		if !found {
			fresh = append(fresh, f)
		}
	}
	if len(fresh) > 0 {
		at, text := list.OpenRange.End.Byte, written(fresh)
		if n := len(list.Exprs); n > 0 {
			at, text = list.Exprs[n-1].Range().End.Byte, ", "+text
		}
		changes = append(changes, change{at, at, text})
	}
	slices.SortFunc(changes, func(a, b change) int { return b.at - a.at })
	out := slices.Clone(src)
	for _, c := range changes { // from the end on, so that places stay as they are
		out = slices.Concat(out[:c.at], []byte(c.text), out[c.end:])
	}
	return Format(file, out)
}

// plainString is the value of an expression that is a plain string.
func plainString(e hclsyntax.Expression) (string, bool) {
	t, ok := e.(*hclsyntax.TemplateExpr)
	if !ok || !t.IsStringLiteral() {
		return "", false
	}
	v, diags := t.Value(nil)
	return v.AsString(), !diags.HasErrors()
}
