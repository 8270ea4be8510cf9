package xpu

import (
	"embed"
	"fmt"
	"strings"

	"roundhouse/kernels"
)

//go:embed kernels/*.cl
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

// source is the whole program: the prelude, a linear for each format and number of
// rows, and the rest. The tuning's figures stand before it.
func source(t Tuning) string {
	var s strings.Builder
	fmt.Fprintf(&s, "#define SPLIT %d\n#define PASTE(a, b) a##b\n#define CAT(a, b) PASTE(a, b)\n", t.Split)
	s.WriteString(text("prelude"))
	if t.Lanes > 0 {
		fmt.Fprintf(&s, "#define LANES %d\n%s", t.Lanes, text("sg"))
	}
	for _, l := range linears {
		for _, many := range []bool{false, true} {
			fmt.Fprintf(&s, "#define NAME %s\n#define FORMAT %s\n", linearName(l.format, many), l.macro)
			switch {
			case t.matrix(l.format) && many:
				fmt.Fprintf(&s, "#define MT %d\n%s", t.tiles(l.format), text("matrix"))
			case t.matrix(l.format):
				fmt.Fprintf(&s, "#define MT 1\n%s", text("matrix"))
			case many:
				fmt.Fprintf(&s, "#define R %d\n%s", t.Rows, text("linear"))
			default:
				fmt.Fprintf(&s, "#define R 1\n%s", text("linear"))
			}
		}
	}
	for _, name := range []string{"operand", "rowwise", "attention", "moe", "delta", "sample"} {
		s.WriteString(text(name))
	}
	return s.String()
}
