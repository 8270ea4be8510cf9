package xpu

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"roundhouse/kernels"
)

// The sources, and kernels/spirv where `make kernels` has put what it built.
//
//go:embed kernels
var sources embed.FS

// linears names the linear kernels by format. The four-bit formats share one: zero
// points and groups are arguments.
var linears = []struct {
	format kernels.Format
	macro  string
}{
	{kernels.FormatF32, "F32"}, {kernels.FormatBF16, "BF16"}, {kernels.FormatF16, "F16"}, {kernels.FormatInt8, "INT8"},
	{kernels.FormatInt4, "INT4"}, {kernels.FormatFP8, "FP8"}, {kernels.FormatMXFP4, "MXFP4"},
}

// linearName is the kernel of a format for one row a group, or for many.
func linearName(f kernels.Format, many bool) string {
	if f == kernels.FormatGPTQ || f == kernels.FormatAWQ {
		f = kernels.FormatInt4
	}
	for _, l := range linears {
		if l.format == f {
			if many {
				return "linear_" + strings.ToLower(l.macro) + "_many"
			}
			return "linear_" + strings.ToLower(l.macro) + "_one"
		}
	}
	panic(fmt.Sprintf("BUG: no linear for %v", f))
}

// text is one of the embedded files.
func text(name string) string {
	t, err := sources.ReadFile("kernels/" + name + ".cl")
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return string(t)
}

// Module is kernels that are built together: each linear by itself, the rest by file. Only
// the modules that a program uses are built.
type Module struct {
	Name    string
	Kernels []string
	Text    string
	Options string // that it is compiled with
}

// files are the modules besides the linears.
var files = []string{"operand", "rowwise", "attention", "moe", "delta", "lora", "convolution", "sample"}

var entry = regexp.MustCompile(`(?m)(?:^|__kernel )void ([a-z_0-9]+)\(__global`)

// Modules lists all kernels for a tuning, in a fixed order.
func Modules(t Tuning) []Module {
	var all []Module
	for _, l := range linears {
		for _, many := range []bool{false, true} {
			name := linearName(l.format, many)
			m := Module{Name: name, Kernels: []string{name}, Options: t.options()}
			body := fmt.Sprintf("#define NAME %s\n#define FORMAT %s\n", name, l.macro)
			switch {
			case t.matrix(l.format) && many:
				rows, columns := t.shape(l.format)
				body += fmt.Sprintf("#define MT %d\n#define CT %d\n", rows, columns) + text("unit") + text("tiles")
				if t.DPAS {
					m.Options += largeRegisters
				}
			case t.matrix(l.format):
				body += text("unit") + text("matrix")
			case many:
				body += fmt.Sprintf("#define R %d\n", t.height(l.format)) + text("linear")
			default:
				body += "#define R 1\n" + text("linear")
			}
			m.Text = head(t) + body
			all = append(all, m)
		}
	}
	for _, name := range files {
		m := Module{Name: name, Text: head(t) + text(name), Options: t.options()}
		for _, found := range entry.FindAllStringSubmatch(text(name), -1) {
			m.Kernels = append(m.Kernels, found[1])
		}
		if name == "attention" {
			m.attend(t)
		}
		all = append(all, m)
	}
	return all
}

// attend adds the kernels that read pages, one for each type of them.
func (m *Module) attend(t Tuning) {
	s := m.Text + fmt.Sprintf("#define QUERIES %d\n", t.Queries)
	for _, page := range []struct{ name, macro string }{
		{"rows", "ROWS"}, {"f32", "PAGE_F32"}, {"f16", "PAGE_F16"}, {"bf16", "PAGE_BF16"}, {"fp8", "PAGE_F8E4M3"}, {"int8", "PAGE_INT8"},
	} {
		m.Kernels = append(m.Kernels, "attend_"+page.name)
		s += fmt.Sprintf("#define NAME attend_%s\n#define TYPE %s\n%s", page.name, page.macro, text("attend"))
	}
	m.Text = s
}

// head is what stands before every module: the tuning's figures and the prelude.
func head(t Tuning) string {
	s := fmt.Sprintf("#define SPLIT %d\n#define PASTE(a, b) a##b\n#define CAT(a, b) PASTE(a, b)\n", t.Split) + text("prelude")
	if t.Unroll {
		s = "#define UNROLLED\n" + s
	}
	if t.Lanes > 0 {
		s += fmt.Sprintf("#define LANES %d\n#define GROUP %d\n%s", t.Lanes, subGroups, text("sg"))
	}
	return s
}

// Key names what a module is built from: text and options. A SPIR-V file of another key
// is of another version.
func (m Module) Key() string {
	sum := sha256.Sum256([]byte(m.Options + "\x00" + m.Text))
	return hex.EncodeToString(sum[:8])
}

// File is the name of the module's SPIR-V.
func (m Module) File() string { return m.Name + "-" + m.Key() + ".spv" }

// IL is the module's SPIR-V, where this build has it.
func (m Module) IL() []byte {
	il, err := sources.ReadFile("kernels/spirv/" + m.File())
	if err != nil {
		return nil
	}
	return il
}
