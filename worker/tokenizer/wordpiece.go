package tokenizer

import "unicode/utf8"

// wordPiece takes the longest token that begins a word, then the longest that
// continues it, and so on; a word that cannot be cut so is unknown.
type wordPiece struct {
	vocab   map[string]int32
	prefix  string // what a token carries that continues a word: ##
	most    int    // characters; longer words are unknown
	longest int    // bytes of the longest token
	unknown int32
}

func (w *wordPiece) encode(ids []int32, piece string, sc *scratch) []int32 {
	if utf8.RuneCountInString(piece) > w.most {
		return append(ids, w.unknown)
	}
	from := len(ids)
	for at := 0; at < len(piece); {
		id, end := w.next(piece, at, sc)
		if end == at {
			return append(ids[:from], w.unknown)
		}
		ids = append(ids, id)
		at = end
	}
	return ids
}

// next returns the longest token at piece[at] and its end, at itself if there
// is none.
func (w *wordPiece) next(piece string, at int, sc *scratch) (int32, int) {
	sc.buffer = sc.buffer[:0]
	if at > 0 {
		sc.buffer = append(sc.buffer, w.prefix...)
	}
	lead := len(sc.buffer)
	sc.buffer = append(sc.buffer, piece[at:min(len(piece), at+w.longest)]...)
	for n := len(sc.buffer); n > lead; n-- {
		if id, ok := w.vocab[string(sc.buffer[:n])]; ok {
			return id, at + n - lead
		}
	}
	return 0, at
}

// wordList is a plain list of words.
type wordList struct {
	vocab      map[string]int32
	unknown    int32
	hasUnknown bool
}

func (w *wordList) encode(ids []int32, piece string, _ *scratch) []int32 {
	if id, ok := w.vocab[piece]; ok {
		return append(ids, id)
	}
	if w.hasUnknown {
		return append(ids, w.unknown)
	}
	return ids
}
