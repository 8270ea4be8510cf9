package parser

import "strings"

// reasoningParser cuts the reasoning off the front of an output: what stands
// between its marks. open says that the reasoning has begun without one, as
// the prompt ends in it or the family always thinks; a mark at the beginning
// is dropped all the same.
type reasoningParser struct {
	marks   Marks
	open    bool
	started bool // the beginning was looked at
	said    bool // some of the reasoning was handed out
	done    bool // behind the reasoning, or there is none
	held    string
}

func (r *reasoningParser) inside() bool { return !r.done && (r.open || r.started) }

// add returns the content in a piece of text.
func (r *reasoningParser) add(text string, out *output) string {
	if r.done {
		return text
	}
	r.held += text
	if !r.started {
		trimmed := strings.TrimLeft(r.held, " \t\r\n")
		is, maybe := begins(trimmed, r.marks.Open)
		switch {
		case is:
			r.held = trimmed[len(r.marks.Open):]
		case maybe:
			return ""
		case !r.open:
			r.done = true
			return r.held
		}
		r.started = true
	}
	before, rest, found := cut(r.held, r.marks.Shut)
	r.held = rest
	r.think(before, found, out)
	if !found {
		return ""
	}
	r.done = true
	r.held = ""
	return rest
}

// think hands out reasoning. Where the family writes line breaks around it,
// they are left out.
func (r *reasoningParser) think(s string, last bool, out *output) {
	if r.marks.answer != "" && !r.marks.exact || r.marks.trim {
		if !r.said && !r.marks.trim {
			s = strings.TrimLeft(s, "\n")
		}
		blank := "\n"
		if r.marks.trim {
			blank = " \t\r\n"
		}
		kept := strings.TrimRight(s, blank)
		if !last {
			r.held = s[len(kept):] + r.held
		}
		s = kept
	}
	r.said = r.said || s != ""
	out.delta.Reasoning += s
}

// finish returns the content that was held back.
func (r *reasoningParser) finish(out *output) string {
	held := r.held
	r.held = ""
	if r.done {
		return ""
	}
	if r.open || r.started {
		r.think(held, true, out)
		return ""
	}
	return held
}

// wrapParser takes the tags off an answer, <answer> and </answer> for one,
// with the line breaks beside them.
type wrapParser struct {
	tag    string
	held   string
	inside bool
}

// add returns what certainly belongs to the answer.
func (w *wrapParser) add(text string) string {
	w.held += text
	var out strings.Builder
	for {
		before, marker, rest := cutAny(w.held, "<"+w.tag+">", "</"+w.tag+">")
		if marker == "" {
			kept := strings.TrimRight(before, "\n")
			out.WriteString(w.begin(kept))
			w.held = before[len(kept):] + rest
			return out.String()
		}
		out.WriteString(w.begin(strings.TrimRight(before, "\n")))
		w.held = strings.TrimLeft(rest, "\n")
		w.inside = false
		if marker[1] != '/' && w.held == "" {
			return out.String()
		}
	}
}

// begin drops the line breaks that an answer begins with.
func (w *wrapParser) begin(s string) string {
	if !w.inside {
		s = strings.TrimLeft(s, "\n")
		w.inside = s != ""
	}
	return s
}

func (w *wrapParser) finish() string {
	s := w.begin(w.held)
	w.held = ""
	return s
}
