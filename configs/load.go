package configs

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Load reads and checks the configuration file at path. env looks the
// environment up; it serves env() in the file and the default
// of state_dir. What is wrong inside the file comes as Diagnostics.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	src, err := readRegular(path)
	if err != nil {
		return nil, err
	}
	cfg, err := Parse(path, src, env)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o002 != 0 {
		cfg.Warnings = append(cfg.Warnings, Diagnostic{File: path,
			Message: "everybody on this machine can write to it, and so run what they like as its user: chmod o-w it"})
	}
	return cfg, nil
}

// Parse reads and checks a configuration that is already in memory. Messages
// call it file, and the paths of file() are relative to file's folder.
func Parse(file string, src []byte, env func(string) (string, bool)) (*Config, error) {
	cfg, d := decode(file, src, env)
	if cfg != nil {
		d.check(cfg)
	}
	if len(d.diags) > 0 {
		return nil, sorted(d.diags)
	}
	cfg.Warnings = sorted(d.warns)
	cfg.revealed = func() []string { return *d.revealed }
	return cfg, nil
}

// decode reads src into a Config with its defaults, not yet checked.
func decode(file string, src []byte, env func(string) (string, bool)) (*Config, *decoder) {
	d := &decoder{
		evaluator: evaluator{dir: filepath.Dir(file), env: env, revealed: new([]string)},
		file:      file, src: src,
		where: map[string]hcl.Range{}, hidden: map[string]bool{},
	}
	body := d.parse()
	if body == nil {
		return nil, d
	}
	cfg := defaults(env)
	d.config(d.body("", body), cfg)
	d.resolve(cfg)
	d.unsound = d.misread(body)
	return cfg, d
}

// misread names the blocks at the top of a file in which something is wrong so
// far: what else is wrong with them cannot be told apart from what follows of
// that.
func (d *decoder) misread(top *hclsyntax.Body) map[string]bool {
	names := map[string]bool{}
	for _, b := range top.Blocks {
		path := b.Type
		if len(b.Labels) > 0 {
			path = labelled(b.Type, b.Labels[0])
		}
		for _, fault := range d.diags {
			if fault.Line >= b.TypeRange.Start.Line && fault.Line <= b.CloseBraceRange.End.Line {
				names[path] = true
			}
		}
	}
	return names
}

// parse returns the syntax tree, or nil after a syntax error, of which only
// the first is kept: the others are mostly its echoes.
func (d *decoder) parse() *hclsyntax.Body {
	if bad := scan(d.file, d.src); bad != nil {
		d.diags = Diagnostics{*bad}
		return nil
	}
	file, faults := hclparse.NewParser().ParseHCL(d.src, d.file)
	for _, f := range faults {
		if f.Severity != hcl.DiagError {
			continue
		}
		if f.Summary == "Attribute redefined" { // not of the syntax: the tree is whole
			d.errorAt(*f.Subject, "the attribute is given twice in one block")
			continue
		}
		at := hcl.Range{Start: hcl.InitialPos, End: hcl.InitialPos}
		if f.Subject != nil {
			at = *f.Subject
		}
		d.diags = Diagnostics{diagnose(d.file, d.src, at, f.Summary+": "+f.Detail)}
		return nil
	}
	return file.Body.(*hclsyntax.Body)
}

// sorted returns ds in the order of the lines, each once.
func sorted(ds Diagnostics) Diagnostics {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(ds, func(a, b Diagnostic) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
}

// Format returns src in the one way that configurations are written: two
// spaces a level, equals signs in columns. A syntax error comes as
// Diagnostics, in which the text is called file.
func Format(file string, src []byte) ([]byte, error) {
	d := &decoder{file: file, src: src}
	if d.parse(); len(d.diags) > 0 {
		return nil, d.diags
	}
	out := hclwrite.Format(bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")))
	if !bytes.HasSuffix(out, []byte("\n")) && len(out) > 0 {
		out = append(out, '\n')
	}
	return out, nil
}
