package launch

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// flagText is the table of flags, with its own description.
//
//go:embed flags.txt
var flagText string

// takes is what follows a flag.
type takes string

const (
	takesValue  takes = "value"
	takesMaybe  takes = "maybe"
	takesSwitch takes = "switch"
	takesList   takes = "list"
	takesJSON   takes = "json"
)

// flagSpec is one line of the table.
type flagSpec struct {
	name    string   // without dashes
	also    []string // other names, with theirs
	takes   takes
	verdict string   // done, same, only or no
	values  []string // of only
	why     string
}

// flagSpecs reads the table.
var flagSpecs = sync.OnceValue(func() []flagSpec {
	var out []flagSpec
	for line := range strings.Lines(flagText) {
		if strings.HasPrefix(line, "-") {
			out = append(out, readSpec(line))
		}
	}
	return out
})

func readSpec(line string) flagSpec {
	said, why, _ := strings.Cut(line, ": ")
	words := strings.Fields(said)
	names := slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") })
	if names < 1 || len(words) < names+2 {
		panic(fmt.Sprintf("BUG: flags.txt has the line %q", line))
	}
	return flagSpec{
		name: strings.TrimPrefix(words[0], "--"), also: words[1:names], takes: takes(words[names]),
		verdict: words[names+1], values: words[names+2:], why: strings.TrimSpace(why),
	}
}

// unset reports whether a value is one that vLLM's own reads as none.
func unset(v string) bool {
	return slices.Contains([]string{"", "None", "null", "[]", "{}", "false"}, v)
}

// judge is what becomes of a value of a flag that sets nothing.
func (s *flagSpec) judge(v string) error {
	switch {
	case s.verdict == "no" && !unset(v):
		return fmt.Errorf("not supported: %s", s.why)
	case s.verdict == "only" && s.takes == takesSwitch && !slices.Contains(s.values, v):
		return fmt.Errorf("%s: %s", v, s.why)
	case s.verdict == "only" && !slices.Contains(s.values, v):
		return fmt.Errorf("%q is not supported; want %s: %s", v, strings.Join(s.values, " or "), s.why)
	}
	return nil
}

// written is the flag as it is said to the reader.
func (s *flagSpec) written() string {
	if s.takes == takesSwitch {
		return "--[no-]" + s.name
	}
	return "--" + s.name
}
