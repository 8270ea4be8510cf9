package launch

import (
	"testing"

	"roundhouse/worker/template"
)

// TestMessagesWithoutContent holds that a message which only calls tools reaches
// a template as it expects it: without content where the template asks, and
// with an empty one where it would add it to other text.
func TestMessagesWithoutContent(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		w := textFiles{source: source}
		if err := w.parse("m"); err != nil {
			t.Fatal(err)
		}
		vars, err := template.FromJSON([]byte(`[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[]},{"role":"assistant","tool_calls":[]}]`))
		if err != nil {
			t.Fatal(err)
		}
		segments, err := w.template(map[string]any{"messages": vars})
		got := ""
		for _, s := range segments {
			got += s.Text
		}
		if err != nil || got != want {
			t.Errorf("%s gives %q, %v; want %q", source, got, err, want)
		}
	}
	f(`{% for m in messages %}<{{ '' + m['content'] }}>{% endfor %}`, "<hi><><>")
	f(`{% for m in messages %}{% if m['content'] is none %}-{% else %}{{ m['content'] }}{% endif %}{% endfor %}`, "hi--")
	f(`{% for m in messages %}{% if m.content  is not  none %}{{ m.content }}{% else %}-{% endif %}{% endfor %}`, "hi--")
}

// TestThinking holds that reasoning in the history reaches a template that
// calls it thinking, but not beside both content and calls.
func TestThinking(t *testing.T) {
	w := textFiles{source: `{% for m in messages %}{% set message = m %}[{{ message.thinking }}]{% endfor %}`}
	if err := w.parse("m"); err != nil {
		t.Fatal(err)
	}
	vars, err := template.FromJSON([]byte(`[{"role":"user","content":"hi","reasoning":"no"},{"role":"assistant","content":"x","reasoning":"a"},{"role":"assistant","reasoning_content":"b","tool_calls":[]},
		{"role":"assistant","content":"x","reasoning":"c","tool_calls":[]},{"role":"assistant","content":"x","reasoning":"d","thinking":"own"}]`))
	if err != nil {
		t.Fatal(err)
	}
	segments, err := w.template(map[string]any{"messages": vars})
	got := ""
	for _, s := range segments {
		got += s.Text
	}
	if want := "[][a][b][][own]"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
