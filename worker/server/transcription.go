package server

import (
	"context"
	"net/http"
	"strings"

	"roundhouse/worker"
	"roundhouse/worker/sound"
	"roundhouse/worker/speech"
	"roundhouse/worker/tokenizer"
)

// transcription is a request to write down or to translate speech, on its way.
type transcription struct {
	*job
	form      *speechForm
	h         *Hearing
	translate bool
	held      *worker.Pin
	items     []worker.Item // a piece of the sound each
	starts    []float64     // of the pieces, in seconds, and the end
	seconds   float64
	language  string // code
	told      string // what of the text was streamed
}

// speaking is the handler of speech that is written down, or translated.
func speaking(s *Server, translate bool) http.HandlerFunc {
	return s.generating(func(w http.ResponseWriter, r *http.Request) {
		// What is taken in is answered, in as many requests as that takes.
		held, failed := s.cfg.Engine.Pin()
		if failed != nil {
			writeError(w, unavailable("the worker is shutting down"))
			return
		}
		defer held.Release()
		t := &transcription{h: s.cfg.Hearing, translate: translate, held: held}
		if err := t.take(s, r); err != nil {
			writeError(w, err)
			return
		}
		if err := t.listen(r); err != nil {
			writeError(w, err)
			return
		}
		if t.form.sampling.Stream {
			t.stream(w, r)
		} else {
			t.answer(w, r)
		}
	})
}

// take reads the form and the sound.
func (t *transcription) take(s *Server, r *http.Request) (err *apiError) {
	if t.form, err = readForm(r, s.cfg.BodyLimit, t.h.Bytes); err != nil {
		return err
	}
	f := t.form
	model, err := s.model(f.fields["model"])
	if err != nil {
		return err
	}
	if err := f.check(s.cfg.MaxModelLen); err != nil {
		return err
	}
	prefix := "trsc-"
	if t.translate {
		prefix = "trsl-"
	}
	t.job = s.newJob(r, prefix, &f.sampling, model)
	if err := t.named("language", f.fields["language"], &t.language); err != nil {
		return err
	}
	if err := t.named("to_language", f.fields["to_language"], new(string)); err != nil {
		return err
	}
	if t.translate && t.h.Words.Languages == nil {
		return badValue("model", "this model knows English alone and translates nothing")
	}
	pieces, err := t.h.decode(f.file)
	if err != nil {
		return err
	}
	f.file, t.starts = nil, []float64{0}
	for _, p := range pieces {
		t.items, t.seconds = append(t.items, t.h.item(p)), t.seconds+float64(len(p))/sound.Rate
		t.starts = append(t.starts, t.seconds)
	}
	return nil
}

// named finds the language that a field names; "" is none.
func (t *transcription) named(field, name string, at *string) *apiError {
	if name == "" {
		return nil
	}
	code, ok := t.h.Words.Language(name)
	if !ok {
		return badValue(field, "Unsupported language: %q. Language must be one of %s.", printable(name, 32), strings.Join(t.h.Words.Codes(), ", "))
	}
	*at = code
	return nil
}

// listen finds the language where none was named, and makes a request of each piece.
func (t *transcription) listen(r *http.Request) *apiError {
	w := t.h.Words
	if t.language == "" && w.Languages == nil {
		t.language = "en"
	}
	if t.language == "" {
		if err := t.detect(r.Context()); err != nil {
			if told := t.failure(r.Context(), err); told != nil {
				return told
			}
			return unavailable("the client has left")
		}
	}
	p, text, err := t.s.params(&t.form.sampling)
	if err != nil {
		return err
	}
	t.text = text
	var earlier []int32
	if said := strings.TrimSpace(t.form.fields["prompt"]); said != "" {
		if err := t.s.checkLength(said); err != nil {
			return err
		}
		earlier = w.Text(t.s.encode(" "+said, false, false))
	}
	tokens := w.Prompt(earlier, t.language, t.translate, t.form.times(), t.s.cfg.MaxModelLen)
	for i := range t.items {
		if err := t.job.take(r, p, tokens, t.form.sampling.MaxTokens, "max_completion_tokens"); err != nil {
			return err
		}
		req := &t.reqs[len(t.reqs)-1]
		req.Media, req.Guides = t.items[i:i+1], []worker.Guide{w.Guide(t.form.times())}
	}
	t.submit = t.held.Submit
	return nil
}

// detect asks for the language of the first piece: of one step behind the token of
// the beginning, the likeliest.
func (t *transcription) detect(ctx context.Context) error {
	w := t.h.Words
	spoken := w.Spoken()
	p := worker.Params{N: 1, MaxTokens: 1, TopP: 1, Repetition: 1, Logprobs: -1, PromptLogprobs: -1}
	for id := range spoken {
		p.Allowed = append(p.Allowed, id)
	}
	st, err := t.held.Submit(worker.Request{ID: t.id, Tokens: []int32{w.Start}, Params: p, Media: t.items[:1:1]})
	if err != nil {
		return err
	}
	defer st.Close()
	for {
		events, err := st.Next(ctx)
		if err != nil {
			return err
		}
		for i := range events {
			if e := &events[i]; e.Err != nil {
				return e.Err
			} else if e.Token >= 0 {
				t.language = spoken[e.Token]
				return nil
			}
		}
	}
}

// piece is what was written down of a piece of sound.
type piece struct {
	tokens []speech.Token
	dec    *tokenizer.Decoder
	ended  bool
	finish string
	opened bool // some of its text was told
}

// add takes an update in, and returns the text that it releases.
func (p *piece) add(w *speech.Words, u *update) (text string) {
	if u.token >= 0 {
		c := &u.event.Chosen
		p.tokens = append(p.tokens, speech.Token{ID: u.token, Logprob: float64(c.Logit - c.LogSumExp)})
		if u.token < w.End {
			text = p.dec.Add(u.token)
		}
	}
	if u.finish != "" {
		p.ended, p.finish = true, string(u.finish)
		text += p.dec.Flush()
	}
	return text
}

// newPieces are those of the request, of which nothing is written yet.
func (t *transcription) newPieces() []piece {
	out := make([]piece, len(t.reqs))
	for i := range out {
		out[i].dec = t.s.cfg.Tokenizer.NewDecoder(true)
	}
	return out
}
