package native

import (
	"regexp"
	"strings"
)

// Loop is an innermost loop of a kernel that uses the matrix unit.
type Loop struct {
	DPAS     int
	Messages map[string]int // what it asks memory for: "load.ugm.d32x8t.a64" and how often
}

var (
	label  = regexp.MustCompile(`^\s*([A-Za-z_0-9]+):`)
	branch = regexp.MustCompile(`\b(?:while|goto|jmpi|brc|brd)\b`)
	jump   = regexp.MustCompile(`\bL\d+\b`)
	said   = regexp.MustCompile(`//.*;\s*(.*)$`)
)

// MatrixLoops finds the innermost loops of an assembly text in which the matrix unit is
// used: what lies between a label and a later branch back to it.
func MatrixLoops(asm string) []Loop {
	lines := strings.Split(asm, "\n")
	at := map[string]int{}
	type span struct{ from, to int }
	var spans []span
	for i, l := range lines {
		if m := label.FindStringSubmatch(l); m != nil {
			at[m[1]] = i
		} else if branch.MatchString(l) {
			for _, name := range jump.FindAllString(l, -1) {
				if from, before := at[name]; before {
					spans = append(spans, span{from, i})
					break
				}
			}
		}
	}
	var out []Loop
	for _, s := range spans {
		inner := false
		for _, o := range spans {
			inside := o != s && o.from >= s.from && o.to <= s.to
			inner = inner || inside && strings.Contains(strings.Join(lines[o.from:o.to], "\n"), "dpas")
		}
		if loop := readLoop(lines[s.from:s.to]); loop.DPAS > 0 && !inner {
			out = append(out, loop)
		}
	}
	return out
}

func readLoop(lines []string) Loop {
	l := Loop{Messages: map[string]int{}}
	for _, line := range lines {
		switch {
		case strings.Contains(line, "dpas"):
			l.DPAS++
		case strings.Contains(line, "send"):
			what := strings.TrimSpace(line)
			if m := said.FindStringSubmatch(line); m != nil {
				what = strings.TrimSpace(m[1])
			}
			l.Messages[what]++
		}
	}
	return l
}

var block = regexp.MustCompile(`^(load|store)\.ugm\.d\d+x\d+t\.|block`)

// Scattered lists the messages of a loop to memory (not to the memory of a group) that
// are not of whole blocks.
func (l Loop) Scattered() []string {
	var out []string
	for m := range l.Messages {
		global := !strings.Contains(m, ".slm") && !strings.Contains(m, "barrier") && !strings.Contains(m, "fence")
		if global && (!block.MatchString(m) || strings.Contains(m, "scratch")) {
			out = append(out, m)
		}
	}
	return out
}
