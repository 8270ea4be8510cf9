package resume

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// pendingText knows which of an answer's tokens the client has the text of. A
// foreign worker says tokens before their text: it holds back a possible
// beginning of a stop string, and tokens that end in half a character. A stream
// that goes on must go on behind the last token whose text the client has, or
// the text held back would be lost.
//
// Where the worker parts reasoning from the answer, the marker between them is
// in the tokens and not in the text, and its parser looks for it in tokens whose
// text may still be held back: near the beginning and near the marker it cannot
// be told which text is which token's. Behind that, in the reasoning or in the
// answer, every token adds its own text again, and a stream may go on there.
type pendingText struct {
	on     bool    // there are stop strings
	hold   int     // characters that a worker holds back for them
	silent int     // tokens at the end without text
	marks  []int32 // for each token, where its text ends in the answer; -1: not known
	first  int     // the tokens that the present worker began behind
	start  int     // where its text begins in the answer
	got    int     // characters that it has said
	text   []rune  // the client's
	again  []rune  // its part that the worker will say again
	parts  bool    // the worker parts reasoning from the answer
	turn   int     // where the answer begins in the text; below 0: not yet
	margin int     // so many characters behind the beginning and the turn nothing is sure
}

// aroundMarkers is more characters than a parser of reasoning takes out
// beside its markers.
const aroundMarkers = 32

// watchStops finds out how much a worker holds back for this request.
func (s *Stream) watchStops(body []byte) {
	if !s.a.names(`"stop"`) {
		return
	}
	var asked struct {
		Stop    json.RawMessage `json:"stop"`
		Include bool            `json:"include_stop_str_in_output"`
	}
	if json.Unmarshal(body, &asked) != nil {
		return
	}
	var one string
	var list []string
	if json.Unmarshal(asked.Stop, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(asked.Stop, &list) != nil {
		return
	}
	hold := 0
	for _, stop := range list {
		hold = max(hold, utf8.RuneCountInString(stop)-1)
	}
	if hold <= 0 || asked.Include {
		return
	}
	for i := range s.choices {
		s.choices[i].back = pendingText{on: true, hold: hold, parts: s.a.End != "" && s.a.API == Chat, turn: -1,
			margin: hold + utf8.RuneCountInString(s.a.End) + aroundMarkers}
	}
}

// hasText reports whether an event carries a piece of the answer.
func hasText(data []byte) bool {
	for _, f := range textFields[:4] {
		if at := bytes.Index(data, []byte(f)); at >= 0 && at+len(f) < len(data) && data[at+len(f)] != '"' {
			return true
		}
	}
	return false
}

// follow enters an event of the worker that the client's stream began with.
func (s *Stream) follow(c *choice, data []byte, ids int) {
	if !s.plain || ids == 0 {
		return
	}
	b := &c.back
	if hasText(data) {
		b.silent = 0
	} else {
		b.silent += ids
	}
	if !b.on || s.way != Anew {
		return
	}
	var e struct {
		Choices []struct {
			Text  string `json:"text"`
			Delta struct {
				Content   string `json:"content"`
				Reasoning string `json:"reasoning_content"`
				Newer     string `json:"reasoning"`
			} `json:"delta"`
		} `json:"choices"`
	}
	if json.Unmarshal(data, &e) != nil || len(e.Choices) == 0 {
		return
	}
	d := &e.Choices[0].Delta
	thought := d.Reasoning + d.Newer
	if d.Content != "" && b.turn < 0 {
		b.turn = len(b.text) + utf8.RuneCountInString(thought)
	}
	b.say(e.Choices[0].Text+thought+d.Content, len(c.tokens))
}

// say enters text that a worker has said by so many tokens, and returns the part
// that is new to the client; ok is false where it says something else again than
// it, or the one before it, has said.
func (b *pendingText) say(text string, tokens int) (fresh string, ok bool) {
	for len(b.marks) < tokens {
		b.marks = append(b.marks, -1)
	}
	said := []rune(text)
	if len(said) == 0 {
		return "", true
	}
	b.got += len(said)
	if tokens > 0 {
		b.marks[tokens-1] = int32(b.start + b.got + b.hold)
	}
	n := min(len(said), len(b.again))
	if string(said[:n]) != string(b.again[:n]) {
		return "", false
	}
	b.again = b.again[n:]
	b.text = append(b.text, said[n:]...)
	return string(said[n:]), true
}

// sound reports whether a stream may go on behind so many characters.
func (b *pendingText) sound(at int) bool {
	return !b.parts || at >= max(b.turn, 0)+b.margin
}

// cut returns how many tokens a stream goes on behind; ok is false where it
// cannot be told.
func (b *pendingText) cut(tokens int) (m int, ok bool) {
	if !b.on {
		tokens -= min(b.silent, tokens)
		b.silent = 0
		return tokens, true
	}
	m, at := b.first, b.start
	for i := min(tokens, len(b.marks)); i > b.first; i-- {
		if end := int(b.marks[i-1]); end >= 0 && end <= len(b.text) {
			m, at = i, end
			break
		}
	}
	if !b.sound(at) {
		return 0, false
	}
	b.marks = b.marks[:min(m, len(b.marks))]
	b.first, b.start, b.got, b.silent = m, at, 0, 0
	b.again = append([]rune(nil), b.text[at:]...)
	return m, true
}
