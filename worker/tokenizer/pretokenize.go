package tokenizer

// piece is a part of a text on its way to the model.
type piece struct {
	text  string
	first bool // it begins where the whole text begins
}

// A preTokenizer cuts a piece into pieces.
type preTokenizer interface {
	split(p piece, emit func(piece))
}

// sequence applies pre-tokenizers one after the other.
type sequence []preTokenizer

func (s sequence) split(p piece, emit func(piece)) {
	switch len(s) {
	case 0:
		emit(p)
	case 1:
		s[0].split(p, emit)
	default:
		s[0].split(p, func(p piece) { s[1:].split(p, emit) })
	}
}

// behavior says what becomes of the matches of a splitter.
type behavior int

const (
	removed behavior = iota
	isolated
	mergedWithPrevious
	mergedWithNext
	contiguous
)

// splitPattern cuts a piece at the matches of a scanner.
type splitPattern struct {
	scanner  scanner
	behavior behavior
	invert   bool // what the scanner leaves out counts as the match
}

func (sp splitPattern) split(p piece, emit func(piece)) {
	s := p.text
	if r, ok := sp.scanner.(regexScanner); ok {
		sp.scanner = r.on(s)
	}
	out := func(from, to int) {
		if from < to {
			emit(piece{s[from:to], p.first && from == 0})
		}
	}
	if sp.behavior == isolated {
		for i := 0; i < len(s); {
			from, to := sp.scanner.next(s, i)
			out(i, from)
			out(from, to)
			i = to
		}
		return
	}
	sp.merge(s, out)
}

// merge hands out the parts of s joined as the behaviour says.
func (sp splitPattern) merge(s string, out func(from, to int)) {
	held, was := 0, false // s[held:] waits; was: the part before is a match
	part := func(from, to int, match bool) {
		if from == to {
			return
		}
		switch sp.behavior {
		case removed:
			if !match {
				out(from, to)
			}
		case contiguous:
			if match != was {
				out(held, from)
				held = from
			}
		case mergedWithPrevious:
			if match && !was {
				out(held, to)
				held = to
			} else {
				out(held, from)
				held = from
			}
		case mergedWithNext:
			if match || !was {
				out(held, from)
				held = from
			}
		}
		was = match
	}
	for i := 0; i < len(s); {
		from, to := sp.scanner.next(s, i)
		part(i, from, sp.invert)
		part(from, to, !sp.invert)
		i = to
	}
	if sp.behavior != removed {
		out(held, len(s))
	}
}

// byteLevel is the pre-tokenizer of byte-level vocabularies.
type byteLevel struct {
	addSpace bool // put a space before a piece that has none
	words    bool // cut by the pattern of GPT-2
	spell    bool // spell the bytes: another pre-tokenizer follows
}

func (b byteLevel) split(p piece, emit func(piece)) {
	if b.addSpace && p.text != "" && p.text[0] != ' ' {
		p.text = " " + p.text
	}
	if b.spell {
		inner := emit
		emit = func(p piece) { inner(piece{spellBytes(p.text), p.first}) }
	}
	if !b.words {
		emit(p)
		return
	}
	splitPattern{gpt2Scanner{}, isolated, false}.split(p, emit)
}

// unspell turns spelled bytes back into bytes for a byte-level model. It
// stands last when other stages ran on the spelling.
type unspell struct{}

func (unspell) split(p piece, emit func(piece)) {
	if b, ok := unspellBytes(p.text); ok {
		p.text = string(b)
	}
	emit(p)
}
