//go:build browser

package web_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"
)

// choose has a select of a name take a value.
func (p *tab) choose(name, value string) {
	p.t.Helper()
	is[bool](p, fmt.Sprintf(`(() => { const s = [...document.querySelectorAll('label')].find(l => l.textContent.startsWith(%q) && l.querySelector('select')).querySelector('select'); s.value = %q; s.dispatchEvent(new Event('change')); return true })()`, name, value))
}

// attach puts a file into the page's file button.
func (p *tab) attach(name string, content []byte) {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		p.t.Fatal(err)
	}
	root := call(p, dom.GetDocument, dom.GetDocumentParams{})
	node := call(p, dom.QuerySelector, dom.QuerySelectorParams{NodeID: root.Root.NodeID, Selector: "[data-attach]"})
	call(p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, NodeID: node.NodeID})
	p.until(fmt.Sprintf(`document.querySelector('.attached').innerText.includes(%q)`, name))
}

// TestTry: of each model what its pool takes is offered, and nothing else; what is sent is
// what the API wants, and what comes is shown as what it is.
func TestTry(t *testing.T) {
	picture, err := base64.StdEncoding.DecodeString(dot)
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t, mediaScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/try")
	for _, c := range []struct {
		task, offered, press string
		file                 string // is attached first
		sent                 []string
		shown                string // an expression
	}{
		{"generate", "Chat|Side by side|Many at once", "Send", "dot.png",
			[]string{`chat/completions {`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + dot + `"}}`, `{"type":"text","text":"What is this?"}`},
			`document.querySelector('.said [data-phase=ended]') && document.querySelector('.said .text').innerText.startsWith('a dot. <img') && document.querySelector('.sent img').naturalWidth === 1`},
		{"generate", "Chat|Side by side|Many at once", "Send", "hello.wav", []string{`{"type":"input_audio","input_audio":{"data":"UklGRi`, `"format":"wav"}`}, `document.querySelectorAll('.said [data-phase=ended]').length === 2`},
		{"image", "Pictures", "Draw", "", []string{`images/generations {"model":"a-image","prompt":"A steam locomotive`, `"response_format":"b64_json"`},
			`document.querySelector('.pictures img')?.naturalWidth === 1 && document.querySelector('.pictures code').innerText.startsWith('https://elsewhere')`},
		{"speech", "Speech", "Speak", "", []string{`audio/speech {"model":"a-speech","input":"The train`}, `document.querySelector('audio')?.src.startsWith('blob:')`},
		{"transcribe", "Transcription", "Transcribe", "hello.wav", []string{`name="model"` + "\r\n\r\na-transcribe", `filename="hello.wav"`, "RIFF"}, `document.querySelector('[data-result=transcript] .text')?.innerText.startsWith('The train departs. <img')`},
		{"embed", "Embeddings", "Embed", "", []string{`embeddings {"model":"a-embed","input":["A locomotive","A steam engine","A teapot"]}`}, `[...document.querySelectorAll('.alike')].map(c => c.innerText).join(' ').startsWith('1.00 0.80 0.00 0.80')`},
		{"score", "Rerank", "Rank", "", []string{`rerank {"model":"a-score","query":"Which of these`}, `document.querySelector('[data-result=ranks] tbody th')?.innerText === 'A steam engine'`},
	} {
		p.choose("Model", "a-"+c.task)
		p.until(fmt.Sprintf(`[...document.querySelectorAll('.choices button')].map(b => b.innerText).join('|') === %q`, c.offered))
		if c.file != "" {
			content := picture
			if strings.HasSuffix(c.file, ".wav") {
				content = []byte(silence)
			}
			p.attach(c.file, content)
		}
		before := len(f.noted())
		p.press(c.press)
		p.until(c.shown)
		sent := f.noted()[before]
		for _, want := range c.sent {
			if !strings.Contains(sent, want) {
				t.Errorf("%s: what is sent lacks %s: %.600s", c.task, want, sent)
			}
		}
		p.audit("try " + c.task)
		p.shoot("try-" + c.task)
	}
	p.choose("Model", "a-transcribe")
	p.until(`document.querySelector('[data-attach]')?.accept === 'audio/*'`)
	is[bool](p, `(() => { const d = new DataTransfer(); d.items.add(new File(['x'], 'letter.txt', {type: 'text/plain'})); document.querySelector('form.try').dispatchEvent(new DragEvent('drop', {dataTransfer: d, cancelable: true, bubbles: true})); return true })()`)
	p.until(`document.querySelector('[role=alert]')?.innerText.includes('letter.txt: text/plain')`)
	p.clean(f.URL)
}

// TestRecord speaks into the browser's own false microphone: what it hears can be sent.
func TestRecord(t *testing.T) {
	f := newFake(t, mediaScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/try")
	p.choose("Model", "a-transcribe")
	p.press("Record")
	p.until(`document.querySelector('.attached [role=status]')?.innerText.includes('B')`)
	p.press("Stop recording")
	p.until(`document.querySelector('.attachment')?.innerText.includes('recording.wav')`)
	p.press("Transcribe")
	p.until(`document.querySelector('[data-result=transcript]')`)
	if sent := f.noted(); !strings.Contains(sent[len(sent)-1], "WAVEfmt ") {
		t.Errorf("what is sent is no recording: %.300q", sent[len(sent)-1])
	}
	p.clean(f.URL)
}

// TestDiagnosis: Health shows what ails the service, by which figures, the setting as it
// is and as it should be, and what to run.
func TestDiagnosis(t *testing.T) {
	f := newFake(t, busyScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/health")
	p.until(`document.querySelectorAll('.ailment').length === 2`)
	got := is[string](p, `document.querySelector('.ailment').innerText`)
	for _, want := range []string{"critical", "kv-thrashing", "chat/4", "97 % full", "1.8 for each answer", "more requests are admitted", `"256"`, `"96"`, "vLLM: --max-num-seqs 96", "roundhouse reload", "stay under 0.25", "kv-leak of chat/2", "not all of it"} {
		if !strings.Contains(got, want) {
			t.Errorf("the finding does not say %s:\n%s", want, got)
		}
	}
	if !is[bool](p, `document.querySelector('.evidence .spark path') !== null && document.body.innerText.includes('1 rule could not look')`) {
		t.Error("no course of the figures, or nothing of the rules that could not look")
	}
	run(p, chromedp.Reload())
	p.until(`document.querySelectorAll('.ailment').length === 2`)
}
