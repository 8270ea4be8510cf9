package template

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"roundhouse/worker/tokenizer"
)

// FuzzRender: any template ends within its limits, with an error or with
// text, and no byte of what came from outside is handed out as the
// template's own.
func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"{% for m in messages %}{{ m.role ~ m['content'] | trim }}{% endfor %}", "{% macro m(a, b=1) %}{{ a }}{{ caller() }}{% endmacro %}{% call m(2) %}x{% endcall %}",
		"{%- set ns = namespace(x=[]) -%}{% if not ns.x is defined %}{{ 1 }}{% elif 2 > 1 %}{{ messages | tojson(indent=2) }}{% endif %}", "{{ '%s' % c }}{{ '{:>9}'.format(c) }}",
		"{{ c[::-1] | upper | replace('a', c) }}{{ c.split() }}", "{{ messages | groupby('role') | list }}{{ range(9) | batch(2) | list }}", "{% raw %}{{{% endraw %}{# c #}", "{{ c * 3 + (c | safe) ~ [c, {c: c}] }}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := Parse(src)
		if err != nil {
			return
		}
		vars := map[string]any{"c": "\uE000a\uE000 b'<\uE000", "messages": []any{NewDict().Set("role", "user").Set("content", "\uE000x")}}
		segments, err := tmpl.Render(vars, Limits{Steps: 100_000, Output: 1 << 20, Depth: 20})
		if err != nil || strings.Contains(src, "\uE000") || !utf8.ValidString(src) {
			return
		}
		for _, s := range segments {
			if !s.Content && strings.Contains(s.Text, "\uE000") {
				t.Errorf("%q hands content out as its own: %q", src, s.Text)
			}
		}
	})
}

// FuzzFromJSON: what FromJSON takes, tojson writes as equal JSON.
func FuzzFromJSON(f *testing.F) {
	for _, s := range []string{`{"a": [1, 2.5, "x\u00e9\ud83d\ude82", null, true]}`, `"\\\"\n"`, `-0`, `1e300`, `[[[]]]`} {
		f.Add(s)
	}
	tmpl := mustParse(f, "{{ v | tojson }}")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := FromJSON([]byte(s))
		if err != nil {
			return
		}
		got, err := tmpl.RenderString(map[string]any{"v": v}, Limits{})
		if err != nil {
			return
		}
		var a, b any
		if json.Unmarshal([]byte(s), &a) != nil {
			t.Fatalf("%q is taken and is not JSON", s)
		}
		if err := json.Unmarshal([]byte(got), &b); err != nil {
			t.Fatalf("%q becomes %q: %v", s, got, err)
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		plain := func(b []byte) string { return strings.ReplaceAll(string(b), "-0", "0") } // Python's ints have no -0
		if plain(x) != plain(y) {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}

// TestDemonstrationModel renders the template of the model that is built in.
func TestDemonstrationModel(t *testing.T) {
	src, want := demonstration(t)
	tmpl := mustParse(t, src)
	for _, c := range want {
		segments, err := tmpl.Render(map[string]any{"messages": c.Messages, "add_generation_prompt": c.Add}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := joined(segments); got != c.Text {
			t.Errorf("%q; want %q", got, c.Text)
		}
	}
	if len(want) == 0 {
		t.Error("the golden file has no renderings")
	}
}

func joined(segments []tokenizer.Segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.Text)
	}
	return b.String()
}
