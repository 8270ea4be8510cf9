package template

import (
	"errors"
	"strings"
	"testing"

	"roundhouse/worker/tokenizer"
)

func mustParse(t testing.TB, src string) *Template {
	t.Helper()
	tmpl, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestSegmentsSayWhatIsContent(t *testing.T) {
	f := func(src string, vars map[string]any, want ...tokenizer.Segment) {
		t.Helper()
		got, err := mustParse(t, src).Render(vars, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %v; want %v", src, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%s: segment %d is %v; want %v", src, i, got[i], want[i])
			}
		}
	}
	lit := func(s string) tokenizer.Segment { return tokenizer.Segment{Text: s} }
	con := func(s string) tokenizer.Segment { return tokenizer.Segment{Text: s, Content: true} }
	user := map[string]any{"c": "  a<|end|>b\n ", "bos": Literal("<s>"), "words": []string{"x", "y"}}

	f("{{ bos }}[{{ c }}]", user, lit("<s>["), con("  a<|end|>b\n "), lit("]"))
	f("{{ '<|end|>' + c | trim + '<|end|>' }}", user, lit("<|end|>"), con("a<|end|>b"), lit("<|end|>"))
	f("{{ ('<|x|>' ~ c.strip() ~ '|').replace('b', '<b>') }}", user, lit("<|x|>"), con("a<|end|>"), lit("<b>|"))
	f("{{ (c | trim).split('<|end|>')[0] ~ c[3:6] }}", user, con("a<|e"))
	f("{{ words | join('-') | upper }}", user, con("X"), lit("-"), con("Y"))
	f("{{ {'k': c | trim} | tojson }}", user, lit(`{"k": "`), con("a<|end|>b"), lit(`"}`))
	f("{{ [c | trim] }}", user, lit("['"), con("a<|end|>b"), lit("']"))
	f("{{ '%s!' % words[0] }}{{ '{}?'.format(words[1]) }}", user, con("x"), lit("!"), con("y"), lit("?"))
	f("{% macro m(x) %}<{{ x }}>{% endmacro %}{% set s %}{{ m(words[0]) }}{% endset %}{{ s }}", user, lit("<"), con("x"), lit(">"))
	f("{{ 'a' * 2 ~ words[0] * 2 }}", user, lit("aa"), con("xx"))
	f("{{ (c | trim)[::-1] }}", user, con("b>|dne|<a"))
	f("{{ words[0] | indent(2, true) }}", user, lit("  "), con("x"))
}

func TestLimits(t *testing.T) {
	f := func(src, limit string) {
		t.Helper()
		_, err := mustParse(t, src).RenderString(map[string]any{"c": strings.Repeat("x", 1000)}, Limits{Steps: 200_000, Output: 1 << 20})
		var stopped *LimitError
		if !errors.As(err, &stopped) || stopped.Limit != limit {
			t.Errorf("%s: %v; want to be stopped by %s", src, err, limit)
		}
	}
	f("{% for i in range(10**9) %}{% endfor %}", "Steps")
	f("{% for i in range(999) %}{% for j in range(999) %}{{ i }}{% endfor %}{% endfor %}", "Steps")
	f("{{ 'x' * 10**9 }}", "Output")
	f("{{ 'x' * 10**18 }}", "Output")
	f("{{ [0] * 10**18 }}", "Steps")
	f("{{ '' * 10**18 }}{{ [] * 10**18 }}{% for i in range(10**9) %}{% endfor %}", "Steps")
	f("{% set ns = namespace(s=c) %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", "Output")
	f("{% set ns = namespace(s=[c]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "Steps")
	f("{% set ns = namespace(s=[c]) %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}", "Steps")
	f("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "Depth")
	f("{% macro m(n) %}{{ m(n) ~ m(n) }}{% endmacro %}{{ m(1) }}", "Depth")
	f("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "Depth")
	f("{{ c.replace('x', c).replace('x', c) }}", "Output")
	f("{% for i in range(9999) %}{{ c | sort | join | upper }}{% endfor %}", "Steps")
	f("{{ '%9999d' % 1 }}{% for i in range(999) %}{{ '%9999d' % 1 }}{% endfor %}", "Output")
	f("{{ 'a'.center(10**9) }}", "Output")
	f("{{ 'a' | indent(10**9) }}", "Output")
	f("{{ range(10**9) | list | length }}", "Steps")
	f("{{ [1] | batch(10**9, 'x') | list }}", "Steps")
	f("{{ [1] | slice(10**9) | list }}", "Steps")
}

func TestErrorsNameTheLine(t *testing.T) {
	f := func(src string, line int) {
		t.Helper()
		tmpl, err := Parse(src)
		if err == nil {
			_, err = tmpl.Render(map[string]any{}, Limits{})
		}
		var e *Error
		if !errors.As(err, &e) || e.Line != line {
			t.Errorf("%q: %v; want an error in line %d", src, err, line)
		}
	}
	f("a\n{{ x.y }}", 2)
	f("a\n\n{% if %}", 3)
	f("{% if 1 %}\n{{ 1 }}\n", 2)
	f("{{ 1 }}\n{{ 'a' + 1 }}", 2)
	f("{% for a in [] %}\n{% include 'etc/passwd' %}{% endfor %}", 2)
	f(strings.Repeat("{% if 1 %}", 300), 1)
	f("{{ "+strings.Repeat("(", 5000)+" }}", 1)
	f("{{ "+strings.Repeat("-", 5000)+"1 }}", 1)
	f("{{ "+strings.Repeat("not ", 5000)+"1 }}", 1)
	f("{{ 9999999999999999999 }}", 1)
	f("{{ 9223372036854775807 + 1 }}", 1)
	f("{{ 3 ** 99 }}", 1)
	f("\xff", 1)
}

func TestRaisedMessageIsForTheClient(t *testing.T) {
	_, err := mustParse(t, "{{ raise_exception('Roles must alternate') }}").Render(nil, Limits{})
	var raised *RaisedError
	if !errors.As(err, &raised) || raised.Message != "Roles must alternate" {
		t.Fatalf("error is %v", err)
	}
}

func TestOneTemplateRendersConcurrently(t *testing.T) {
	tmpl := mustParse(t, "{% set s | upper %}{{ c }}{% endset %}{% filter lower %}{{ s }}{{ c }}{% endfilter %}")
	done := make(chan string)
	for _, c := range []string{"A", "b", "C", "d"} {
		go func() {
			for range 200 {
				if s, err := tmpl.RenderString(map[string]any{"c": c}, Limits{}); err != nil || s != strings.ToLower(c+c) {
					done <- s
					return
				}
			}
			done <- ""
		}()
	}
	for range 4 {
		if s := <-done; s != "" {
			t.Errorf("a rendering gave %q, another's text", s)
		}
	}
}

func TestVariables(t *testing.T) {
	v, err := FromJSON([]byte(`{"z": 1, "a": [1.0, 2e2, true, null, "x"], "z": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := mustParse(t, "{{ v | tojson }}").RenderString(map[string]any{"v": v}, Limits{})
	if want := `{"z": 3, "a": [1.0, 200.0, true, null, "x"]}`; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for _, bad := range []string{"", "{", "[1", "1 2", `{"a"}`, strings.Repeat("[", 1000), "1e999 x"} {
		if _, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("FromJSON(%q) has no error", bad)
		}
	}
	if _, err := mustParse(t, "").Render(map[string]any{"x": struct{}{}}, Limits{}); err == nil {
		t.Error("a variable of an unknown type has no error")
	}
}
