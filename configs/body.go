package configs

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"roundhouse/configs/near"
)

// decoder turns a parsed file into a Config and gathers its faults.
type decoder struct {
	evaluator
	file  string
	src   []byte
	diags Diagnostics
	warns Diagnostics

	where  map[string]hcl.Range // path → the attribute or block that stands there
	hidden map[string]bool      // paths whose value must not be printed

	unsound map[string]bool // blocks at the top of the file that could not be read whole
}

// body is one block's inside, being read. Each method below takes one
// attribute or block by name; end reports the rest. So a function
// that reads a block is also the list of the block's attributes.
type body struct {
	d      *decoder
	path   string // `pool "chat"/rotation`; "" at the top of the file
	src    *hclsyntax.Body
	attrs  []string
	blocks []string
}

func (d *decoder) body(path string, src *hclsyntax.Body) *body {
	return &body{d: d, path: path, src: src}
}

// sub names a thing inside path.
func sub(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// labelled names a block with a label.
func labelled(kind, label string) string { return fmt.Sprintf("%s %q", kind, label) }

// describe turns a path into the words of a message.
func describe(path string) string { return strings.ReplaceAll(path, "/", " ") }

// maxDiagnostics is how many faults of one file are told. Who has more has
// given the wrong file.
const maxDiagnostics = 100

func (d *decoder) errorAt(r hcl.Range, format string, args ...any) {
	if len(d.diags) >= maxDiagnostics {
		return
	}
	d.diags = append(d.diags, diagnose(d.file, d.src, r, fmt.Sprintf(format, args...)))
}

// locate returns where path stands, or the nearest block around it.
func (d *decoder) locate(path string) hcl.Range {
	for path != "" {
		if r, ok := d.where[path]; ok {
			return r
		}
		cut := strings.LastIndexByte(path, '/')
		path = path[:max(cut, 0)]
	}
	return hcl.Range{}
}

// failf reports a fault at a path.
func (d *decoder) failf(path, format string, args ...any) {
	d.errorAt(d.locate(path), format, args...)
}

// warnf reports a setting that is allowed and hardly meant.
func (d *decoder) warnf(path, format string, args ...any) {
	d.warns = append(d.warns, diagnose(d.file, d.src, d.locate(path), fmt.Sprintf(format, args...)))
}

// show returns a value for a message, or a stand-in if the value came
// out of env() or file().
func (d *decoder) show(path, text string) string {
	if d.hidden[path] {
		return "what env() or file() returned"
	}
	return fmt.Sprintf("%q", text)
}

// written reports whether the file itself sets path.
func (d *decoder) written(path string) bool { _, ok := d.where[path]; return ok }

// take works attribute name out. It reports its faults; ok is
// false if there is nothing to use.
func (b *body) take(name string, want ...kind) (v value, ok bool) {
	b.attrs = append(b.attrs, name)
	attr := b.src.Attributes[name]
	if attr == nil {
		return value{}, false
	}
	path := sub(b.path, name)
	b.d.where[path] = attr.SrcRange
	v, f := b.d.eval(attr.Expr)
	if f != nil {
		b.d.errorAt(f.at, "%s: %s", name, f.message)
		return value{}, false
	}
	b.d.hidden[path] = v.hidden
	if !slices.Contains(want, v.kind) {
		b.d.errorAt(attr.SrcRange, "%s takes %s, found %s", name, joinKinds(want), v.kind)
		return value{}, false
	}
	return v, true
}

func joinKinds(kinds []kind) string {
	parts := make([]string, len(kinds))
	for i, k := range kinds {
		parts[i] = string(k)
	}
	return strings.Join(parts, " or ")
}

func (b *body) text(name string, out *string) {
	if v, ok := b.take(name, kindText); ok {
		if strings.ContainsRune(v.text, 0) {
			b.d.failf(sub(b.path, name), "%s holds a NUL byte", name)
			return
		}
		*out = v.text
	}
}

// choice takes one of a few words.
func (b *body) choice(name string, out *string, words ...string) {
	before := *out
	b.text(name, out)
	if *out == before || slices.Contains(words, *out) {
		return
	}
	message := fmt.Sprintf("%s is %s; it is one of %s", name, b.d.show(sub(b.path, name), *out), strings.Join(words, ", "))
	if meant := near.Name(*out, words); meant != "" && !b.d.hidden[sub(b.path, name)] {
		message += fmt.Sprintf("; did you mean %q?", meant)
	}
	b.d.failf(sub(b.path, name), "%s", message)
	*out = before
}

func (b *body) secret(name string, out *Secret) {
	var text string
	b.text(name, &text)
	if path := sub(b.path, name); b.d.written(path) {
		b.d.hidden[path] = true
		*out = Secret(text)
	}
}

func (b *body) truth(name string, out *bool) {
	if v, ok := b.take(name, kindTruth); ok {
		*out = v.truth
	}
}

// integer takes a whole number between least and most.
func integer[T int | int64](b *body, name string, out *T, least, most int64) {
	v, ok := b.take(name, kindNumber)
	if !ok {
		return
	}
	n, exact := v.number.Int64()
	if exact != big.Exact || n < least || n > most {
		b.d.errorAt(v.at, "%s is %s; it is a whole number from %d to %d", name, v.number.Text('g', 10), least, most)
		return
	}
	*out = T(n)
}

// share takes a number between 0 and most.
func (b *body) share(name string, out *float64, most float64) {
	v, ok := b.take(name, kindNumber)
	if !ok {
		return
	}
	f, _ := v.number.Float64()
	if math.IsInf(f, 0) || f < 0 || f > most {
		b.d.errorAt(v.at, "%s is %s; it is a number from 0 to %g", name, v.number.Text('g', 10), most)
		return
	}
	*out = f
}

// items takes a list of one kind, which a message names of: read gets one item
// after the other and reports whether it is in order.
func (b *body) items(name string, want kind, of string, read func(value) bool) (ok bool) {
	v, ok := b.take(name, kindList)
	if !ok {
		return false
	}
	for _, item := range v.items {
		if item.kind != want {
			b.d.errorAt(item.at, "%s is a list of %s, found %s in it", name, of, item.kind)
			return false
		}
		if !read(item) {
			return false
		}
	}
	return true
}

// shares takes a list of numbers between 0 and 1.
func (b *body) shares(name string, out *[]float64) {
	list := []float64{}
	if b.items(name, kindNumber, "numbers from 0 to 1", func(item value) bool {
		f, _ := item.number.Float64()
		if math.IsInf(f, 0) || f < 0 || f > 1 {
			b.d.errorAt(item.at, "%s has %s in it; each is a number from 0 to 1", name, item.number.Text('g', 10))
			return false
		}
		list = append(list, f)
		return true
	}) {
		*out = list
	}
}

// duration takes a time of at least least.
func (b *body) duration(name string, out *Duration, least Duration) {
	v, ok := b.take(name, kindText)
	if !ok {
		return
	}
	path := sub(b.path, name)
	t, err := ParseDuration(v.text)
	switch {
	case err != nil && v.hidden:
		b.d.failf(path, `%s: %s is not a time; write one such as "90s"`, name, b.d.show(path, ""))
	case err != nil:
		b.d.failf(path, "%s: %v", name, err)
	case t < least:
		b.d.failf(path, "%s is %s; it is %s or more", name, t, least)
	default:
		*out = t
	}
}

// size takes a number of bytes of at least least.
func (b *body) size(name string, out *Size, least Size) {
	v, ok := b.take(name, kindText)
	if !ok {
		return
	}
	path := sub(b.path, name)
	n, err := ParseSize(v.text)
	switch {
	case err != nil && v.hidden:
		b.d.failf(path, `%s: %s is not a size; write one such as "32MiB"`, name, b.d.show(path, ""))
	case err != nil:
		b.d.failf(path, "%s: %v", name, err)
	case n < least:
		b.d.failf(path, "%s is %s; it is %s or more", name, n, least)
	default:
		*out = n
	}
}

func (b *body) list(name string, out *[]string) {
	texts := []string{}
	if b.items(name, kindText, "strings", func(item value) bool {
		b.d.hidden[sub(b.path, name)] = b.d.hidden[sub(b.path, name)] || item.hidden
		texts = append(texts, item.text)
		return true
	}) {
		*out = texts
	}
}

// command takes a list, or a string that a shell would split at spaces, as
// compose does for entrypoint and command.
func (b *body) command(name string, out *[]string) {
	if attr := b.src.Attributes[name]; attr != nil {
		if v, f := b.d.eval(attr.Expr); f == nil && v.kind == kindText {
			b.take(name, kindText)
			*out = strings.Fields(v.text)
			return
		}
	}
	b.list(name, out)
}

// texts takes a map of strings. A number or a truth value becomes the string
// that was written, as compose has it for environment.
func (b *body) texts(name string, out *map[string]string) {
	v, ok := b.take(name, kindMap)
	if !ok {
		return
	}
	m := make(map[string]string, len(v.keys))
	for i, key := range v.keys {
		switch item := v.items[i]; item.kind {
		case kindText:
			m[key] = item.text
		case kindNumber:
			m[key] = item.number.Text('f', -1)
		case kindTruth:
			m[key] = fmt.Sprint(item.truth)
		default:
			b.d.errorAt(item.at, "%s is a map of strings, found %s at %s", name, item.kind, key)
			return
		}
	}
	*out = m
}

// numbers takes a map of whole numbers.
func (b *body) numbers(name string, out *map[string]int64) {
	v, ok := b.take(name, kindMap)
	if !ok {
		return
	}
	m := make(map[string]int64, len(v.keys))
	for i, key := range v.keys {
		item := v.items[i]
		if item.kind != kindNumber {
			b.d.errorAt(item.at, "%s is a map of numbers, found %s at %s", name, item.kind, key)
			return
		}
		n, exact := item.number.Int64()
		if exact != big.Exact || n < -1 {
			b.d.errorAt(item.at, "%s of %s is a whole number, or -1 for no limit", key, name)
			return
		}
		m[key] = n
	}
	*out = m
}

// block takes the one block of a name, which has no label.
func (b *body) block(name string, read func(*body)) {
	b.blocks = append(b.blocks, name)
	var first *hclsyntax.Block
	for _, block := range b.src.Blocks {
		if block.Type != name {
			continue
		}
		if first != nil {
			b.d.errorAt(block.DefRange(), "a second %s block; the first is on line %d", name, first.DefRange().Start.Line)
			continue
		}
		first = block
		if len(block.Labels) > 0 {
			b.d.errorAt(block.LabelRanges[0], "%s takes no label: write %s { … }", name, name)
		}
		path := sub(b.path, name)
		b.d.where[path] = block.DefRange()
		read(b.d.body(path, block.Body))
	}
}

// each takes all blocks of a name, which have one label each.
func (b *body) each(name string, read func(label string, b *body)) {
	b.blocks = append(b.blocks, name)
	seen := map[string]int{}
	for _, block := range b.src.Blocks {
		if block.Type != name {
			continue
		}
		if len(block.Labels) != 1 {
			b.d.errorAt(block.DefRange(), `%s takes one label: write %s "name" { … }`, name, name)
			continue
		}
		label := block.Labels[0]
		if line, twice := seen[label]; twice {
			b.d.errorAt(block.DefRange(), "%s %q is there twice; the first is on line %d", name, label, line)
			continue
		}
		seen[label] = block.DefRange().Start.Line
		path := sub(b.path, labelled(name, label))
		b.d.where[path] = block.DefRange()
		read(label, b.d.body(path, block.Body))
	}
}

// end reports the attributes and blocks that nobody took.
func (b *body) end() {
	place := describe(b.path)
	if place == "" {
		place = "the file"
	}
	known := append(slices.Clone(b.attrs), b.blocks...)
	sort.Strings(known)
	for name, attr := range b.src.Attributes {
		switch {
		case slices.Contains(b.attrs, name):
		case slices.Contains(b.blocks, name):
			b.d.errorAt(attr.NameRange, "%s is a block, not an attribute: write %s { … } without the equals sign", name, name)
		default:
			b.d.errorAt(attr.NameRange, "%s has no attribute %q%s", place, name, suggest(name, known))
		}
	}
	for _, block := range b.src.Blocks {
		switch {
		case slices.Contains(b.blocks, block.Type):
		case slices.Contains(b.attrs, block.Type):
			b.d.errorAt(block.DefRange(), "%s is an attribute, not a block: write %s = …", block.Type, block.Type)
		default:
			b.d.errorAt(block.DefRange(), "%s has no block %q%s", place, block.Type, suggest(block.Type, known))
		}
	}
}

func suggest(name string, known []string) string {
	if meant := near.Name(name, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return "; it has " + strings.Join(known, ", ")
}
