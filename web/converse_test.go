//go:build browser

package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// write puts words into the field of a name.
func (p *tab) write(name, words string) {
	p.t.Helper()
	is[bool](p, fmt.Sprintf(`(() => { const f = [...document.querySelectorAll('label.stacked')].find(l => l.textContent.startsWith(%q)).querySelector('input, textarea'); f.value = %q; f.dispatchEvent(new Event('input')); return true })()`, name, words))
}

// TestMarkdown: an answer is text until the switch is pressed; then it has the elements
// that its marks mean, and no other: markup, links and pictures stay words.
func TestMarkdown(t *testing.T) {
	f := newFake(t, quietScene())
	p := open(t, 320, 700, true)
	p.load(f.URL, "#/try")
	p.write("Message", "Say it in Markdown.")
	p.press("Send")
	p.until(`document.querySelector('.said [data-phase=ended]') && document.querySelector('.said .text').innerText.startsWith('# A title <img')`)
	is[bool](p, `[...document.querySelectorAll('label')].find(l => l.innerText === 'Markdown').querySelector('input').click(), true`)
	p.until(`document.querySelector('.marked .heading')`)
	got := is[string](p, `(() => { const m = document.querySelector('.marked'); const all = s => [...m.querySelectorAll(s)].map(e => e.textContent).join(';');
		return [...new Set([...m.querySelectorAll('*')].map(e => e.localName))].sort().join(' ') + '|' + all('.heading') + '|' + all('strong') + '|' + all('em') + '|' + all('code') + '|' + all('ol > li > ul > li') + '|' + all('blockquote p') + '|' + all('td') + '|' + all('pre') })()`)
	want := strings.Join([]string{"blockquote code div em li ol p pre strong table tbody td th thead tr ul", "A title " + evil, "strong " + evil + ";2", "soft",
		"a_b_c; javascript:document.title='owned'; https://elsewhere.example/x.png", "within " + evil, "quoted", "1;2", evil}, "|")
	if got = strings.TrimSpace(got); got != want {
		t.Errorf("the answer is shown as\n%s\nwant\n%s", got, want)
	}
	if wide := is[int](p, `document.documentElement.scrollWidth`); wide > 320 {
		t.Errorf("the page is %d px wide", wide)
	}
	p.audit("markdown")
	p.clean(f.URL)
}

// TestMarkdownEnds: text made to be slow to read, deep or cut anywhere is drawn all the same.
func TestMarkdownEnds(t *testing.T) {
	p := open(t, 1280, 720, false)
	p.load(newFake(t, quietScene()).URL, "#/try")
	lost := run(p, chromedp.Evaluate[[]string](`import(document.querySelector('link[href*="markdown"]').href).then(({markdown}) => {
		const words = v => v.text ?? v.children.map(words).join('');
		const n = 20000, slow = ['*', '**a*', '`+"`"+`', '_a', '[', '](', '~~a~', '> ', '- ', '  - a\n', '| ', '# ', ' ', '1. ', '> a\n>> b\n', '`+"```"+`\n', '|-|\n'].map(s => s.repeat(n));
		for (const s of slow) markdown(s);
		const text = 'plain a*b and snake_case_name, 2 * 3 * 4 = 24, x < y && "z"';
		return markdown(text).map(words).filter(w => w !== text) })`, chromedp.EvalAwaitPromise))
	if len(lost) != 0 {
		t.Errorf("plain words are shown as %q", lost)
	}
}

// TestTools: the tools that are written go with the question, the call is shown as text,
// and what it returned goes back to the model.
func TestTools(t *testing.T) {
	f := newFake(t, quietScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/try")
	p.write("Tools", `{"type":"function"}`)
	p.press("Send")
	p.until(`document.querySelector('[role=alert]')?.innerText.startsWith('The tools: a list is wanted')`)
	p.write("Tools", `[{"type":"function","function":{"name":"weather"}}]`)
	p.choose("Calls", "required")
	p.press("Send")
	p.until(`document.querySelector('.said [data-phase=ended]') && document.querySelector('.calls b').innerText.startsWith('weather<img') && document.querySelector('.calls pre').innerText.includes('"town": "Leipzig"')`)
	p.audit("a call")
	p.write("What weather", "4 °C, rain")
	p.press("Send")
	p.until(`document.querySelectorAll('.said [data-phase=ended]').length === 2 && document.querySelector('.calls').innerText.includes('4 °C, rain')`)
	sent := f.noted()
	for i, wants := range [][]string{{`"tools":[{"type":"function","function":{"name":"weather"}}],"tool_choice":"required"`},
		{`"tool_calls":[{"id":"call-1","type":"function","function":{"name":"weather`, `{"role":"tool","tool_call_id":"call-1","content":"4 °C, rain"}]`}} {
		for _, want := range wants {
			if !strings.Contains(sent[i], want) {
				t.Errorf("what is sent lacks %s: %.900s", want, sent[i])
			}
		}
	}
	p.clean(f.URL)
}

// TestSees: files are offered where a worker says that it takes them, or says nothing.
func TestSees(t *testing.T) {
	s := quietScene()
	s.workers[0]["modalities"], s.workers[1]["modalities"] = []string{"text"}, []string{"text", "image"}
	third := worker("chat", "3", "ready", 0, 0)
	s.workers = append(s.workers, third)
	p := open(t, 1280, 720, false)
	p.load(newFake(t, s).URL, "#/try")
	for _, c := range []struct{ worker, accepts string }{{"chat/1", ""}, {"chat/2", "image/*"}, {"chat/3", "image/*,audio/*"}, {"", "image/*,audio/*"}} {
		p.choose("Worker", c.worker)
		p.until(fmt.Sprintf(`(document.querySelector('[data-attach]')?.accept ?? '') === %q`, c.accepts))
	}
}

// TestFile: Setup shows how the file differs from what runs, a secret without its value,
// and why a reload would be refused.
func TestFile(t *testing.T) {
	for _, c := range []struct {
		scene scene
		state string
		wants []string
	}{
		{quietScene(), "same", []string{"/etc/roundhouse/roundhouse.hcl", "The file says what runs."}},
		{busyScene(), "differs", []string{"admin.token", "other, and secret", "pools.chat.workers.5", "not there", `["--max-num-seqs","96"]`}},
		{faultyScene(), "refused", []string{"A reload would be refused", "unknown block"}},
	} {
		f := newFake(t, c.scene)
		p := open(t, 1280, 720, false)
		p.load(f.URL, "#/setup")
		p.until(fmt.Sprintf(`document.querySelector('[data-file]')?.dataset.file === %q`, c.state))
		got := is[string](p, `document.querySelector('[data-file]').innerText`)
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: it does not say %s: %s", c.scene.name, want, got)
			}
		}
		p.clean(f.URL)
	}
}
