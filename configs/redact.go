package configs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// secretName finds names whose values nobody should read.
var secretName = regexp.MustCompile(`(?i)token|key|secret|passw|credential`)

// limitName finds an engine's limits, such as --max-num-batched-tokens: numbers of
// tokens, which are no secrets.
var limitName = regexp.MustCompile(`^--(max|min|num|long)[-_].*token`)

// Redacted returns a copy that may be shown: GET /api/config, a bundle for a
// bug report. Secrets hide themselves; this hides what stands in the free
// fields, the environment, arguments and labels: what env() or file()
// returned, and what is given to a name that sounds like a secret.
func (c *Config) Redacted() *Config {
	out := *c
	out.Pools = slices.Clone(c.Pools)
	for i := range out.Pools {
		p := &out.Pools[i]
		p.Engine.Environment = c.redactMap(p.Engine.Environment)
		p.Engine.Args = c.redactList(p.Engine.Args)
		p.Container.Environment = c.redactMap(p.Container.Environment)
		p.Container.Labels = c.redactMap(p.Container.Labels)
		p.Container.Command = c.redactList(p.Container.Command)
		p.Container.Entrypoint = c.redactList(p.Container.Entrypoint)
		p.Workers = slices.Clone(p.Workers)
		for j := range p.Workers {
			w := &p.Workers[j]
			w.Environment, w.Args = c.redactMap(w.Environment), c.redactList(w.Args)
		}
	}
	return &out
}

func (c *Config) redactMap(m map[string]string) map[string]string {
	out := maps.Clone(m)
	for name, value := range out {
		if value != "" && (secretName.MatchString(name) || c.holdsRevealed(value)) {
			out[name] = hiddenText
		}
	}
	return out
}

func (c *Config) redactList(list []string) []string {
	out := slices.Clone(list)
	secret := func(flag string) bool { return secretName.MatchString(flag) && !limitName.MatchString(flag) }
	for i, arg := range out {
		flag, _, hasValue := strings.Cut(arg, "=")
		afterFlag := i > 0 && strings.HasPrefix(list[i-1], "-") && !strings.Contains(list[i-1], "=") && secret(list[i-1])
		switch {
		case strings.HasPrefix(arg, "-") && hasValue && secret(flag):
			out[i] = flag + "=" + hiddenText
		case c.holdsRevealed(arg), afterFlag && !strings.HasPrefix(arg, "-"):
			out[i] = hiddenText
		}
	}
	return out
}

// holdsRevealed reports whether s holds what env() or file() returned. Very
// short values are no secrets, and would be found everywhere.
func (c *Config) holdsRevealed(s string) bool {
	if c.revealed == nil { // it came as JSON, whose secrets are gone already
		return false
	}
	return slices.ContainsFunc(c.revealed(), func(secret string) bool { return len(secret) >= 4 && strings.Contains(s, secret) })
}
