package launch

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// flagKind says what follows a flag.
type flagKind uint8

const (
	flagValue   flagKind = iota // one value
	flagSwitch                  // nothing, or =true; --no-NAME turns it off
	flagList                    // one or more values
	flagIgnored                 // one value that has no meaning here; a warning says so
	flagIgnoredSwitch
)

// flagSpec is one flag and where its value goes.
type flagSpec struct {
	name string
	kind flagKind
	set  func(o *Options, v string) error
}

// parsed is what parseFlags read.
type parsed struct {
	positional []string
	warnings   []string
}

// parseFlags reads args as Python's argparse would read vLLM's: dashes or
// underscores, "--a b" or "--a=b", and any beginning of a name that fits one
// flag alone.
func parseFlags(o *Options, specs []flagSpec, args []string) (parsed, error) {
	var p parsed
	for i := 0; i < len(args); i++ {
		short, _, _ := strings.Cut(args[i], "=")
		if !strings.HasPrefix(args[i], "--") && !slices.Contains([]string{"-tp", "-pp", "-dp", "-q"}, short) {
			p.positional = append(p.positional, args[i])
			continue
		}
		name, inline, hasInline := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		spec, off, err := findFlag(specs, strings.ReplaceAll(name, "_", "-"))
		if err != nil {
			return p, err
		}
		var values []string
		switch {
		case spec.kind == flagSwitch || spec.kind == flagIgnoredSwitch:
			values = []string{switchValue(inline, hasInline, off)}
		case hasInline:
			values = []string{inline}
		case i+1 < len(args):
			i++
			values = []string{args[i]}
			for spec.kind == flagList && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				values = append(values, args[i])
			}
		default:
			return p, fmt.Errorf("--%s needs a value", spec.name)
		}
		if spec.kind == flagIgnored || spec.kind == flagIgnoredSwitch {
			p.warnings = append(p.warnings, "--"+spec.name+" is accepted and has no effect on this engine")
			continue
		}
		for _, v := range values {
			if err := spec.set(o, v); err != nil {
				return p, fmt.Errorf("--%s: %w", spec.name, err)
			}
		}
	}
	return p, nil
}

func switchValue(inline string, has, off bool) string {
	on := !has || strings.EqualFold(inline, "true") || inline == "1"
	if on != off {
		return "true"
	}
	return "false"
}

// findFlag finds the flag that name is, or begins.
func findFlag(specs []flagSpec, name string) (spec flagSpec, off bool, err error) {
	if i := slices.IndexFunc(specs, func(s flagSpec) bool { return s.name == name }); i >= 0 {
		return specs[i], false, nil
	}
	if rest, ok := strings.CutPrefix(name, "no-"); ok {
		i := slices.IndexFunc(specs, func(s flagSpec) bool { return s.name == rest && isSwitch(s) })
		if i >= 0 {
			return specs[i], true, nil
		}
	}
	var fits []string
	for _, s := range specs {
		if strings.HasPrefix(s.name, name) {
			spec = s
			fits = append(fits, "--"+s.name)
		}
	}
	switch len(fits) {
	case 1:
		return spec, false, nil
	case 0:
		return spec, false, fmt.Errorf("there is no flag --%s%s", name, nearest(specs, name))
	}
	return spec, false, fmt.Errorf("--%s may mean %s", name, strings.Join(fits, ", "))
}

func isSwitch(s flagSpec) bool { return s.kind == flagSwitch || s.kind == flagIgnoredSwitch }

// nearest suggests the flag whose name shares most with name.
func nearest(specs []flagSpec, name string) string {
	best, score := "", 0
	for _, s := range specs {
		n := 0
		for _, part := range strings.Split(name, "-") {
			if len(part) > 2 && strings.Contains(s.name, part) {
				n += len(part)
			}
		}
		if n > score {
			best, score = s.name, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean --" + best + "?"
}

// Help lists the flags of serve: those that do something, then those that are
// taken and have no effect.
func Help(w io.Writer) error {
	var working, ignored []string
	for _, s := range serveFlags() {
		switch {
		case s.kind == flagIgnored || s.kind == flagIgnoredSwitch:
			ignored = append(ignored, "--"+s.name)
		case s.kind == flagSwitch:
			working = append(working, "--[no-]"+s.name)
		case len(s.name) > 2:
			working = append(working, "--"+s.name)
		}
	}
	slices.Sort(working)
	slices.Sort(ignored)
	_, err := fmt.Fprintf(w, "Flags, as vLLM's: dashes or underscores, and any beginning that fits one alone.\n\n  %s\n\nTaken, without effect:\n\n  %s\n",
		strings.Join(working, "\n  "), strings.Join(ignored, "\n  "))
	return err
}
