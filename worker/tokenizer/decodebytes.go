package tokenizer

import "strings"

// decodeByteLevel undoes the spelling of bytes as characters.
type decodeByteLevel struct{}

func (decodeByteLevel) bytes(token []byte) []byte {
	if b, ok := unspellBytes(string(token)); ok {
		return b
	}
	return token
}

func (decodeByteLevel) begin(bool) decodeStage { return &byteStage{} }

// byteStage holds back the beginning of a character.
type byteStage struct{ held []byte }

func (s *byteStage) push(token string, emit func(string)) {
	s.held = append(s.held, decodeByteLevel{}.bytes([]byte(token))...)
	n := len(s.held) - incomplete(s.held)
	emit(string(appendValid(nil, s.held[:n], true)))
	s.held = append(s.held[:0], s.held[n:]...)
}

func (s *byteStage) end(emit func(string)) {
	emit(string(appendValid(nil, s.held, true)))
	s.held = s.held[:0]
}

// decodeByteFallback joins tokens such as <0xE2> to characters. Bytes that
// form none become one U+FFFD each, all of a run together as in the library
// where the whole run is known.
type decodeByteFallback struct{}

func (decodeByteFallback) bytes(token []byte) []byte {
	if c, ok := byteToken(string(token)); ok {
		return []byte{c}
	}
	return token
}

func (decodeByteFallback) begin(whole bool) decodeStage { return &fallbackStage{whole: whole} }

type fallbackStage struct {
	whole bool
	run   []byte
}

func (s *fallbackStage) push(token string, emit func(string)) {
	c, ok := byteToken(token)
	if !ok {
		s.end(emit)
		emit(token)
		return
	}
	s.run = append(s.run, c)
	if s.whole {
		return
	}
	if n := len(s.run) - incomplete(s.run); n > 0 {
		emit(fallbackText(s.run[:n]))
		s.run = append(s.run[:0], s.run[n:]...)
	}
}

func (s *fallbackStage) end(emit func(string)) {
	if len(s.run) > 0 {
		emit(fallbackText(s.run))
		s.run = s.run[:0]
	}
}

// fallbackText returns the text of a run of bytes.
func fallbackText(run []byte) string {
	if s := string(run); validUTF8(s) == s {
		return s
	}
	return strings.Repeat(replacement, len(run))
}
