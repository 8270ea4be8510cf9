package server

import (
	"strings"
	"sync"

	"roundhouse/worker/template"
)

// traits are what a chat template can do, found out by having it write small
// chats.
type traits struct {
	once        sync.Once
	developer   bool // it knows messages of developers
	systemFirst bool // it takes a system's message at the beginning alone
}

func plainMessage(role, text string) *template.Dict {
	d := template.NewDict()
	d.Set("role", role)
	d.Set("content", text)
	return d
}

// probe finds out the template's traits.
func (s *Server) probe() *traits {
	t := &s.traits
	t.once.Do(func() {
		t.developer, t.systemFirst = true, true
		if s.cfg.Template == nil {
			return
		}
		vars := func(messages ...any) map[string]any {
			return map[string]any{
				"messages": messages, "add_generation_prompt": false, "tools": nil,
				"bos_token": template.Literal(s.cfg.BOSToken), "eos_token": template.Literal(s.cfg.EOSToken),
			}
		}
		segments, err := s.cfg.Template(vars(plainMessage("developer", "a"), plainMessage("user", "b")))
		t.developer = err == nil
		for _, seg := range segments {
			// It repeats a word that it does not know.
			t.developer = t.developer && !(seg.Content && strings.Contains(seg.Text, "developer"))
		}
		_, err = s.cfg.Template(vars(plainMessage("system", "a"), plainMessage("user", "b"), plainMessage("system", "c"), plainMessage("user", "d")))
		t.systemFirst = err != nil
	})
	return t
}

// systemFirst reports whether the template takes a system's message at the
// beginning alone.
func (s *Server) systemFirst() bool { return s.probe().systemFirst }

// withoutDevelopers makes messages of developers those of the system, where the
// template knows no developers, and one message at the beginning of all that
// the system says.
func (s *Server) withoutDevelopers(messages []any) []any {
	role := func(m any) string {
		v, _ := m.(*template.Dict).Get("role")
		text, _ := v.(string)
		return text
	}
	there := false
	for _, m := range messages {
		there = there || role(m) == "developer"
	}
	if !there || s.probe().developer {
		return messages
	}
	var texts []string
	var rest []any
	for _, m := range messages {
		if r := role(m); r != "developer" && r != "system" {
			rest = append(rest, m)
			continue
		}
		content, _ := m.(*template.Dict).Get("content")
		if text, _ := content.(string); text != "" {
			texts = append(texts, text)
		}
	}
	return append([]any{plainMessage("system", strings.Join(texts, "\n\n"))}, rest...)
}
