package server

import (
	"io"
	"math"
	"net/http"
	"strings"

	"roundhouse/worker/sound"
	"roundhouse/worker/speech"
)

// speechUsage is the account of an answer.
type speechUsage struct {
	Type    string `json:"type"`
	Seconds int    `json:"seconds"`
}

type speechAnswer struct {
	Text  string       `json:"text"`
	Usage *speechUsage `json:"usage,omitempty"`
}

type speechSegment struct {
	ID          int      `json:"id"`
	AvgLogprob  float64  `json:"avg_logprob"`
	Compression float64  `json:"compression_ratio"`
	End         float64  `json:"end"`
	NoSpeech    *float64 `json:"no_speech_prob"`
	Seek        int      `json:"seek"`
	Start       float64  `json:"start"`
	Temperature float64  `json:"temperature"`
	Text        string   `json:"text"`
	Tokens      []int32  `json:"tokens"`
}

type verboseAnswer struct {
	Task     string          `json:"task"`
	Duration float64         `json:"duration"`
	Language string          `json:"language"`
	Text     string          `json:"text"`
	Segments []speechSegment `json:"segments"`
	Words    any             `json:"words"`
	Usage    *speechUsage    `json:"usage"`
}

// answer gathers all and answers once.
func (t *transcription) answer(w http.ResponseWriter, r *http.Request) {
	pieces := t.newPieces()
	texts := make([]strings.Builder, len(pieces))
	err := t.run(r.Context(), func(u update) error {
		texts[u.index].WriteString(pieces[u.index].add(t.h.Words, &u))
		return nil
	})
	if err != nil {
		t.refuse(w, r, err)
		return
	}
	t.s.orca(w, r)
	if t.form.times() {
		t.answerTimed(w, pieces)
		return
	}
	all := ""
	for i := range texts {
		all += t.joined(all != "", texts[i].String())
	}
	if t.form.format() == asText {
		writePlain(w, "text/plain; charset=utf-8", all+"\n")
		return
	}
	a := speechAnswer{Text: all}
	if !t.translate {
		a.Usage = t.account()
	}
	writeJSON(w, http.StatusOK, a)
}

// joined is a piece's text as it stands behind others.
func (t *transcription) joined(others bool, text string) string {
	text = strings.TrimSpace(text)
	if !others || text == "" {
		return text
	}
	return t.separator() + text
}

// separator stands between the texts of two pieces.
func (t *transcription) separator() string {
	if t.translate {
		return speech.Separator("en")
	}
	return speech.Separator(t.language)
}

// account is the account of the sound, in whole seconds.
func (t *transcription) account() *speechUsage {
	return &speechUsage{Type: "duration", Seconds: int(math.Ceil(t.seconds))}
}

// answerTimed answers with stretches and their times.
func (t *transcription) answerTimed(w http.ResponseWriter, pieces []piece) {
	var list []speech.Stretch
	var from []int // where each one's piece begins, in whole seconds
	for i, p := range pieces {
		begin, length := t.starts[i], t.starts[i+1]-t.starts[i]
		for _, s := range t.h.Words.Stretches(p.tokens, begin, length, func(ids []int32) string { return t.s.cfg.Tokenizer.Decode(ids, true) }) {
			list, from = append(list, s), append(from, int(begin))
		}
	}
	switch t.form.format() {
	case asSRT:
		writePlain(w, "application/x-subrip; charset=utf-8", speech.SRT(list))
	case asVTT:
		writePlain(w, "text/vtt; charset=utf-8", speech.VTT(list))
	default:
		writeJSON(w, http.StatusOK, t.verbose(list, from))
	}
}

func (t *transcription) verbose(list []speech.Stretch, from []int) verboseAnswer {
	a := verboseAnswer{Task: "transcribe", Duration: t.seconds, Language: t.language, Segments: []speechSegment{}, Usage: t.account()}
	if t.translate {
		a.Task = "translate"
	}
	for i, s := range list {
		a.Text += t.joined(a.Text != "", s.Text)
		a.Segments = append(a.Segments, speechSegment{ID: i, AvgLogprob: s.Logprob, Compression: speech.Repetition(s.Text), Start: s.Start, End: s.End, Seek: from[i],
			Temperature: *t.form.sampling.Temperature, Text: s.Text, Tokens: s.Tokens})
	}
	return a
}

func writePlain(w http.ResponseWriter, kind, text string) {
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, text) // a client that has left is seen by its context
}

// speechEvent is an event of a stream, as vLLM's clients read it and as OpenAI's do.
type speechEvent struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []speechChoice `json:"choices"`
	Usage   any            `json:"usage,omitempty"`

	Type  string  `json:"type,omitempty"`
	Delta *string `json:"delta,omitempty"`
	Text  *string `json:"text,omitempty"`
}

type speechChoice struct {
	Delta  speechDelta `json:"delta"`
	Finish *string     `json:"finish_reason,omitempty"`
}

type speechDelta struct {
	Content string `json:"content"`
}

// stream writes the text as it is written down, the pieces in their order.
func (t *transcription) stream(w http.ResponseWriter, r *http.Request) {
	ev := newEvents(w)
	defer ev.rest()
	pieces, waiting := t.newPieces(), make([]string, len(t.reqs))
	now := 0 // the piece that is told
	err := t.run(r.Context(), func(u update) error {
		waiting[u.index] += pieces[u.index].add(t.h.Words, &u)
		for now < len(pieces) {
			p := &pieces[now]
			if err := t.tell(ev, p, waiting[now]); err != nil {
				return err
			}
			if waiting[now] = ""; !p.ended {
				break
			}
			now++
		}
		return nil
	})
	if err != nil {
		ev.fail(t.failure(r.Context(), err))
		return
	}
	if t.finish(ev) == nil {
		ev.done()
	}
}

// tell sends what a piece has released since.
func (t *transcription) tell(ev *events, p *piece, text string) error {
	if !p.opened {
		if text = strings.TrimLeft(text, " \n"); text != "" {
			if p.opened = true; t.told != "" {
				text = t.separator() + text
			}
		}
	}
	if text == "" && !p.ended {
		return nil
	}
	t.told += text
	e := t.event(speechChoice{Delta: speechDelta{Content: text}})
	if p.ended {
		e.Choices[0].Finish = &p.finish
	}
	if e.Type = "transcript.text.delta"; text == "" {
		e.Type = ""
	} else {
		e.Delta = &text
	}
	if t.usageInAll() {
		e.Usage = t.streamed()
	}
	return ev.send(e)
}

// finish sends what stands at the end: the whole text, and the account where it was
// asked for.
func (t *transcription) finish(ev *events) error {
	e := t.event(speechChoice{})
	e.Type, e.Text, e.Usage = "transcript.text.done", &t.told, t.account()
	if err := ev.send(e); err != nil || !t.usageAtEnd() {
		return err
	}
	e = t.event()
	e.Usage = t.streamed()
	return ev.send(e)
}

func (t *transcription) event(choices ...speechChoice) *speechEvent {
	e := &speechEvent{ID: t.id, Object: "transcription.chunk", Created: t.created, Model: t.model, Choices: choices}
	if t.translate {
		e.Object = "translation.chunk"
	}
	if choices == nil {
		e.Choices = []speechChoice{}
	}
	return e
}

// streamed is the account in tokens, a prompt's sound being a token for each frame,
// as vLLM counts it.
func (t *transcription) streamed() *streamUsage {
	prompt := len(t.reqs[0].Tokens) + int(math.Ceil(t.seconds*sound.Rate/160))
	return &streamUsage{Prompt: prompt, Completion: t.generated, Total: prompt + t.generated}
}
