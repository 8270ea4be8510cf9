package configs

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// kind is the type of a value of the file, in the words of a message.
type kind string

const (
	kindText    kind = "a string"
	kindNumber  kind = "a number"
	kindTruth   kind = "true or false"
	kindList    kind = "a list"
	kindMap     kind = "a map"
	kindNothing kind = "nothing" // null
)

// value is one value of the file, worked out.
type value struct {
	kind   kind
	text   string
	number *big.Float
	truth  bool
	items  []value
	keys   []string // of a map, beside items
	hidden bool     // it holds a result of env() or file()
	at     hcl.Range
}

// fault is an error in an expression, and its place.
type fault struct {
	at      hcl.Range
	message string
}

func faultf(at hcl.Range, format string, args ...any) *fault {
	return &fault{at, fmt.Sprintf(format, args...)}
}

// evaluator works expressions out. It knows values and the two functions,
// and nothing that could loop or grow.
type evaluator struct {
	dir string // the paths of file() are relative to it
	env func(string) (string, bool)

	revealed *[]string // grows with the results of env() and file()
}

func (e evaluator) eval(x hclsyntax.Expression) (value, *fault) {
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		return literal(x.Val, x.Range())
	case *hclsyntax.ParenthesesExpr:
		return e.eval(x.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return e.eval(x.Wrapped)
	case *hclsyntax.TemplateExpr:
		return e.template(x)
	case *hclsyntax.UnaryOpExpr:
		v, f := e.eval(x.Val)
		if f != nil || v.kind != kindNumber || x.Op != hclsyntax.OpNegate {
			return value{}, orFault(f, faultf(x.Range(), "a minus sign stands before a number only"))
		}
		v.number, v.at = new(big.Float).Neg(v.number), x.Range()
		return v, nil
	case *hclsyntax.TupleConsExpr:
		list := value{kind: kindList, at: x.Range()}
		for _, item := range x.Exprs {
			v, f := e.eval(item)
			if f != nil {
				return value{}, f
			}
			list.items = append(list.items, v)
		}
		return list, nil
	case *hclsyntax.ObjectConsExpr:
		return e.object(x)
	case *hclsyntax.FunctionCallExpr:
		return e.call(x)
	case *hclsyntax.ScopeTraversalExpr:
		return value{}, faultf(x.Range(), "%s is not a value; a string stands in quotes: %q", x.Traversal.RootName(), x.Traversal.RootName())
	}
	return value{}, faultf(x.Range(), `a configuration holds values, env("NAME") and file("path"), no calculations`)
}

func orFault(f, otherwise *fault) *fault {
	if f != nil {
		return f
	}
	return otherwise
}

func literal(v cty.Value, at hcl.Range) (value, *fault) {
	switch {
	case v.IsNull():
		return value{kind: kindNothing, at: at}, nil
	case v.Type() == cty.String:
		return value{kind: kindText, text: v.AsString(), at: at}, nil
	case v.Type() == cty.Number:
		return value{kind: kindNumber, number: v.AsBigFloat(), at: at}, nil
	case v.Type() == cty.Bool:
		return value{kind: kindTruth, truth: v.True(), at: at}, nil
	}
	return value{}, faultf(at, "a value that a configuration cannot hold")
}

func (e evaluator) template(x *hclsyntax.TemplateExpr) (value, *fault) {
	out := value{kind: kindText, at: x.Range()}
	var b strings.Builder
	for _, part := range x.Parts {
		v, f := e.eval(part)
		if f != nil {
			return value{}, f
		}
		if v.kind != kindText {
			return value{}, faultf(part.Range(), "only strings can be put into a string, found %s", v.kind)
		}
		b.WriteString(v.text)
		out.hidden = out.hidden || v.hidden
	}
	out.text = b.String()
	return out, nil
}

func (e evaluator) object(x *hclsyntax.ObjectConsExpr) (value, *fault) {
	m := value{kind: kindMap, at: x.Range()}
	seen := map[string]bool{}
	for _, item := range x.Items {
		key := hcl.ExprAsKeyword(item.KeyExpr)
		if key == "" {
			wrapped, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
			if !ok {
				return value{}, faultf(item.KeyExpr.Range(), "a key is a name or a string")
			}
			k, f := e.eval(wrapped.Wrapped)
			if f != nil || k.kind != kindText || k.text == "" {
				return value{}, orFault(f, faultf(item.KeyExpr.Range(), "a key is a name or a string"))
			}
			key = k.text
		}
		if seen[key] {
			return value{}, faultf(item.KeyExpr.Range(), "%q is given twice", key)
		}
		seen[key] = true
		v, f := e.eval(item.ValueExpr)
		if f != nil {
			return value{}, f
		}
		m.keys = append(m.keys, key)
		m.items = append(m.items, v)
	}
	return m, nil
}

func (e evaluator) call(x *hclsyntax.FunctionCallExpr) (value, *fault) {
	if x.Name != "env" && x.Name != "file" {
		return value{}, faultf(x.NameRange, `there is no function %s; there are env("NAME") and file("path")`, x.Name)
	}
	if len(x.Args) != 1 || x.ExpandFinal {
		return value{}, faultf(x.Range(), "%s takes one string", x.Name)
	}
	arg, f := e.eval(x.Args[0])
	if f != nil {
		return value{}, f
	}
	if arg.kind != kindText || arg.hidden {
		return value{}, faultf(x.Args[0].Range(), "%s takes one string that stands here as it is", x.Name)
	}
	out := value{kind: kindText, hidden: true, at: x.Range()}
	if x.Name == "env" {
		text, ok := e.env(arg.text)
		if !ok {
			return value{}, faultf(x.Range(), "the environment has no %s; set it where roundhouse is started", arg.text)
		}
		out.text = text
		*e.revealed = append(*e.revealed, text)
		return out, nil
	}
	path := arg.text
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.dir, path)
	}
	text, err := readRegular(path)
	if err != nil {
		return value{}, faultf(x.Range(), "%v", err)
	}
	// An editor ends a file with a newline; nobody means it as part of a key.
	out.text = strings.TrimRight(string(text), "\r\n")
	*e.revealed = append(*e.revealed, out.text)
	return out, nil
}

// readRegular reads a regular file of at most MaxFileSize. A directory, a
// pipe or a device is refused: reading one can fail late or never end.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, bare(err))
	}
	if info.IsDir() {
		return nil, fmt.Errorf("cannot read %s: it is a directory", path)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot read %s: it is not a regular file", path)
	}
	if info.Size() > MaxFileSize {
		return nil, fmt.Errorf("cannot read %s: it has %d bytes, more than the %s that are read", path, info.Size(), Size(MaxFileSize))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, bare(err))
	}
	return text, nil
}

// bare returns the cause, without the path that the caller names itself.
func bare(err error) error {
	if p, ok := err.(*os.PathError); ok {
		return p.Err
	}
	return err
}
