package launch

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"roundhouse/configs/near"
)

// parsed is what parseFlags read.
type parsed struct {
	positional []string
	same       []string // flags that change nothing here
}

// flagParser reads arguments as vLLM's parser of flags does: dashes or
// underscores, "--a b" or "--a=b", any beginning of a name that fits one flag
// alone, and fields of JSON as --a.field.
type flagParser struct {
	o    *Options
	args []string
	at   int
	out  parsed

	objects map[string]any // of flags that take JSON
	order   []flagSpec     // in which they came
}

// parseFlags reads args into o.
func parseFlags(o *Options, args []string) (parsed, error) {
	p := &flagParser{o: o, args: args, objects: map[string]any{}}
	for p.at < len(p.args) {
		arg := p.args[p.at]
		p.at++
		var err error
		switch {
		case !strings.HasPrefix(arg, "-"):
			p.out.positional = append(p.out.positional, arg)
		case strings.HasPrefix(arg, "-O") && len(arg) > 2 && arg[2] != '.':
			err = p.flag("--optimization-level=" + strings.TrimPrefix(arg[2:], "="))
		default:
			err = p.flag(arg)
		}
		if err != nil {
			return p.out, err
		}
	}
	for _, spec := range p.order {
		if err := p.setObject(&spec); err != nil {
			return p.out, err
		}
	}
	return p.out, nil
}

// flag takes one flag and what follows it.
func (p *flagParser) flag(arg string) error {
	name, inline, hasInline := strings.Cut(arg, "=")
	name, field, dotted := strings.Cut(name, ".")
	spec, off, err := findFlag(strings.ReplaceAll(name, "_", "-"))
	if err != nil {
		return err
	}
	if dotted && spec.takes != takesJSON {
		return fmt.Errorf("--%s takes no JSON, so that --%[1]s.%s names nothing", spec.name, field)
	}
	if spec.takes == takesSwitch {
		return p.values(&spec, []string{switchValue(inline, hasInline, off)})
	}
	values := p.following(&spec, inline, hasInline)
	switch {
	case len(values) == 0 && spec.takes == takesMaybe:
		values = []string{""}
	case len(values) == 0:
		return fmt.Errorf("--%s needs a value", spec.name)
	case spec.takes == takesJSON:
		return p.object(&spec, field, values[0])
	}
	return p.values(&spec, values)
}

// following are the values that belong to a flag.
func (p *flagParser) following(spec *flagSpec, inline string, hasInline bool) []string {
	if hasInline {
		return []string{inline}
	}
	if p.at == len(p.args) || spec.takes == takesMaybe && strings.HasPrefix(p.args[p.at], "-") {
		return nil
	}
	from := p.at
	p.at++
	for spec.takes == takesList && p.at < len(p.args) && !strings.HasPrefix(p.args[p.at], "-") {
		p.at++
	}
	return p.args[from:p.at]
}

// values gives a flag its values, in place of those of an earlier one.
func (p *flagParser) values(spec *flagSpec, values []string) error {
	p.note(spec)
	if spec.verdict != "done" {
		return spec.judgeAll(values)
	}
	if clear := cleared[spec.name]; clear != nil {
		clear(p.o)
	}
	for _, v := range values {
		if err := setters[spec.name](p.o, v); err != nil {
			return fmt.Errorf("--%s: %w", spec.name, err)
		}
	}
	return nil
}

// note remembers a flag that changes nothing.
func (p *flagParser) note(spec *flagSpec) {
	if spec.verdict == "same" && !slices.Contains(p.out.same, "--"+spec.name) {
		p.out.same = append(p.out.same, "--"+spec.name)
	}
}

func (s *flagSpec) judgeAll(values []string) error {
	for _, v := range values {
		if err := s.judge(v); err != nil {
			return fmt.Errorf("--%s: %w", s.name, err)
		}
	}
	return nil
}

func switchValue(inline string, has, off bool) string {
	on := !has || strings.EqualFold(inline, "true") || inline == "1"
	if on != off {
		return "true"
	}
	return "false"
}

// findFlag finds the flag that name is, or begins; off is its --no- form.
func findFlag(name string) (spec flagSpec, off bool, err error) {
	specs := flagSpecs()
	long, isLong := strings.CutPrefix(name, "--")
	if i := slices.IndexFunc(specs, func(s flagSpec) bool { return isLong && s.name == long || slices.Contains(s.also, name) }); i >= 0 {
		return specs[i], false, nil
	}
	if !isLong {
		return spec, false, fmt.Errorf("there is no flag %s", name)
	}
	var fits []string
	for _, s := range specs {
		if strings.HasPrefix(s.name, long) {
			spec, off = s, false
			fits = append(fits, "--"+s.name)
		}
		if s.takes == takesSwitch && strings.HasPrefix("no-"+s.name, long) && long != "no" && long != "n" {
			if long == "no-"+s.name {
				return s, true, nil
			}
			spec, off = s, true
			fits = append(fits, "--no-"+s.name)
		}
	}
	switch len(fits) {
	case 1:
		return spec, off, nil
	case 0:
		return spec, false, fmt.Errorf("there is no flag --%s%s", long, meant(specs, long))
	}
	return spec, false, fmt.Errorf("--%s may mean %s", long, strings.Join(fits, ", "))
}

// meant suggests the flag whose name shares most with name.
func meant(specs []flagSpec, name string) string {
	known := make([]string, len(specs))
	for i, s := range specs {
		known[i] = s.name
	}
	if best := near.Words(name, known); best != "" {
		return "; did you mean --" + best + "?"
	}
	return ""
}

// Help lists the flags of serve: those that do something, and what becomes of
// the others.
func Help(w io.Writer) error {
	var done, only, same, no []string
	for _, s := range flagSpecs() {
		switch s.verdict {
		case "done":
			done = append(done, s.written())
		case "only":
			only = append(only, fmt.Sprintf("%s %s: %s", s.written(), strings.Join(s.values, "|"), s.why))
		case "same":
			same = append(same, s.written()+": "+s.why)
		default:
			no = append(no, s.written()+": "+s.why)
		}
	}
	_, err := fmt.Fprintf(w, "Flags, as vLLM's: dashes or underscores, any beginning that fits one alone, fields of JSON as --flag.field VALUE, and --config FILE with all of them in YAML.\n")
	for _, part := range []struct {
		title string
		lines []string
	}{{"", done}, {"Taken with these values, which are what is so:", only}, {"Taken, and changing nothing:", same}, {"Not supported:", no}} {
		slices.Sort(part.lines)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n\n  %s\n\n", part.title, strings.Join(part.lines, "\n  "))
		}
	}
	return err
}
