package parser

import "bytes"

// waiting is text that is held until one of some marks comes. Each byte of it is looked
// at once, in however many pieces it comes.
type waiting struct {
	text []byte
	seen int // no mark begins before here
}

// until adds text and looks for the first of marks. Where one is there, it returns what
// stands before it and what behind, and holds nothing any more.
func (w *waiting) until(more string, marks ...string) (before, mark, rest string) {
	w.text = append(w.text, more...)
	at, longest := -1, 0
	for _, m := range marks {
		if i := bytes.Index(w.text[w.seen:], []byte(m)); i >= 0 && (at < 0 || w.seen+i < at) {
			at, mark = w.seen+i, m
		}
		longest = max(longest, len(m))
	}
	if at < 0 {
		w.seen = max(w.seen, len(w.text)-longest+1)
		return "", "", ""
	}
	before, rest = string(w.text[:at]), string(w.text[at+len(mark):])
	w.text, w.seen = w.text[:0], 0
	return before, mark, rest
}
