package tokenizer

import (
	"bytes"
	"strings"
)

// tokenStage is a stage that maps each token on its own; index counts them.
type tokenStage struct {
	index int
	f     func(token string, index int) string
}

func (s *tokenStage) push(token string, emit func(string)) {
	emit(s.f(token, s.index))
	s.index++
}

func (*tokenStage) end(func(string)) {}

// decodeMetaspace writes marks as spaces. Those of the first token stand for
// the space that was put before the text.
type decodeMetaspace struct {
	mark     string
	prefixed bool
}

func (d decodeMetaspace) bytes(token []byte) []byte {
	return bytes.ReplaceAll(token, []byte(d.mark), []byte(" "))
}

func (d decodeMetaspace) begin(bool) decodeStage {
	return &tokenStage{f: func(token string, index int) string {
		if index == 0 && d.prefixed {
			return strings.ReplaceAll(token, d.mark, "")
		}
		return strings.ReplaceAll(token, d.mark, " ")
	}}
}

// decodeWordPiece joins what ## continues and puts spaces between the rest.
type decodeWordPiece struct {
	prefix  string
	cleanup bool
}

func (d decodeWordPiece) bytes(token []byte) []byte { return []byte(d.text(string(token), 1)) }

func (d decodeWordPiece) begin(bool) decodeStage { return &tokenStage{f: d.text} }

// cleanups are the spaces that English text does not have.
var cleanups = []struct{ from, to string }{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
	{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

func (d decodeWordPiece) text(token string, index int) string {
	if index > 0 {
		if strings.HasPrefix(token, d.prefix) {
			token = token[len(d.prefix):]
		} else {
			token = " " + token
		}
	}
	if d.cleanup {
		for _, c := range cleanups {
			token = strings.ReplaceAll(token, c.from, c.to)
		}
	}
	return token
}

// decodeSpaces puts spaces between tokens: what the library does for a file
// without a decoder.
type decodeSpaces struct{}

func (decodeSpaces) bytes(token []byte) []byte { return append([]byte(" "), token...) }

func (decodeSpaces) begin(bool) decodeStage {
	return &tokenStage{f: func(token string, index int) string {
		if index > 0 {
			return " " + token
		}
		return token
	}}
}

// decodeReplace replaces within each token.
type decodeReplace struct{ pattern replacePattern }

func (d decodeReplace) bytes(token []byte) []byte { return []byte(d.pattern.normalize(string(token))) }

func (d decodeReplace) begin(bool) decodeStage {
	return &tokenStage{f: func(token string, _ int) string { return d.pattern.normalize(token) }}
}

// decodeSuffix makes a suffix such as </w> a space, at the end nothing.
type decodeSuffix struct{ suffix string }

func (d decodeSuffix) bytes(token []byte) []byte {
	return bytes.ReplaceAll(token, []byte(d.suffix), []byte(" "))
}

func (d decodeSuffix) begin(bool) decodeStage { return &suffixStage{suffix: d.suffix} }

// suffixStage holds the last token, which is not known to be the last.
type suffixStage struct {
	suffix string
	held   string
}

func (s *suffixStage) push(token string, emit func(string)) {
	emit(strings.ReplaceAll(s.held, s.suffix, " "))
	s.held = token
}

func (s *suffixStage) end(emit func(string)) {
	emit(strings.ReplaceAll(s.held, s.suffix, ""))
	s.held = ""
}

// decodeStrip cuts up to start and stop times a character off the ends of
// each token, or of the whole text after Fuse.
type decodeStrip struct {
	content     string
	start, stop int
	fused       bool
}

func (d decodeStrip) bytes(token []byte) []byte {
	if d.fused {
		return token
	}
	return []byte(d.cut(string(token)))
}

func (d decodeStrip) cut(s string) string {
	for range d.start {
		s = strings.TrimPrefix(s, d.content)
	}
	for range d.stop {
		s = strings.TrimSuffix(s, d.content)
	}
	return s
}

func (d decodeStrip) begin(bool) decodeStage {
	if d.fused {
		return &stripStage{strip: d, left: d.start}
	}
	return &tokenStage{f: func(token string, _ int) string { return d.cut(token) }}
}

// stripStage cuts at the ends of the whole text.
type stripStage struct {
	strip decodeStrip
	left  int    // how much may still be cut at the beginning
	tail  string // what may be cut at the end, if nothing follows
}

func (s *stripStage) push(token string, emit func(string)) {
	for s.left > 0 && token != "" {
		if !strings.HasPrefix(token, s.strip.content) {
			s.left = 0
			break
		}
		token = token[len(s.strip.content):]
		s.left--
	}
	token = s.tail + token
	keep := len(token)
	for range s.strip.stop {
		if !strings.HasSuffix(token[:keep], s.strip.content) {
			break
		}
		keep -= len(s.strip.content)
	}
	s.tail = token[keep:]
	emit(token[:keep])
}

// end drops the tail: it is what the end of the text loses.
func (s *stripStage) end(func(string)) {
	s.left = s.strip.start
	s.tail = ""
}
