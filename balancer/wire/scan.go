package wire

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// scanner walks over JSON without making anything of it.
type scanner struct {
	b    []byte
	i    int
	wide bool // not all is ASCII; what follows is UTF-8, or is not asked to be
}

func (s *scanner) fail(what string) error { return &BodyError{At: s.i, What: what} }

func (s *scanner) end() error {
	s.space()
	if s.i != len(s.b) {
		return s.fail("something follows the JSON object")
	}
	return nil
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\r', '\t':
			s.i++
		default:
			return
		}
	}
}

// key reads a quoted name and its colon, and the space around it.
func (s *scanner) key() ([]byte, error) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return nil, s.fail("a quoted name is needed")
	}
	from := s.i + 1
	escaped, err := s.str()
	if err != nil {
		return nil, err
	}
	key := s.b[from : s.i-1]
	if escaped {
		// An escaped name could hide one that the door reads ("mod\u0065l").
		var plain string
		if json.Unmarshal(s.b[from-1:s.i], &plain) != nil {
			return nil, s.fail("not a valid name")
		}
		if fieldID([]byte(plain)) != 0 {
			key = []byte(plain)
		}
	}
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != ':' {
		return nil, s.fail("a colon is needed")
	}
	s.i++
	s.space()
	return key, nil
}

// value walks over one value.
func (s *scanner) value(depth int) error {
	if s.i >= len(s.b) {
		return s.fail("a value is needed")
	}
	switch c := s.b[s.i]; c {
	case '"':
		_, err := s.str()
		return err
	case '{', '[':
		if depth >= MaxDepth {
			return s.fail(fmt.Sprintf("nests deeper than %d", MaxDepth))
		}
		return s.composite(c, depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) composite(open byte, depth int) error {
	closing := byte(']')
	if open == '{' {
		closing = '}'
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == closing {
		s.i++
		return nil
	}
	for {
		if open == '{' {
			if _, err := s.key(); err != nil {
				return err
			}
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space()
		if s.i >= len(s.b) {
			return s.fail("the body ends inside an object or a list")
		}
		c := s.b[s.i]
		s.i++
		if c == closing {
			return nil
		}
		if c != ',' {
			s.i--
			return s.fail("a comma is needed")
		}
		s.space()
	}
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return s.fail("not a JSON value")
	}
	s.i += len(w)
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) number() error {
	if s.b[s.i] == '-' {
		s.i++
	}
	zero := s.i < len(s.b) && s.b[s.i] == '0'
	from := s.i
	if !s.digits() || zero && s.i-from > 1 {
		return s.fail("not a JSON value")
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return s.fail("not a JSON number")
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		exp := s.i
		if !s.digits() || s.i-exp > 3 {
			return s.fail("not a JSON number")
		}
	}
	return nil
}

// str walks over a string, the cursor on its opening quote, and reports
// whether it holds escapes. At the first byte that is not ASCII it looks at all
// that follows, once, whether it is UTF-8.
func (s *scanner) str() (escaped bool, err error) {
	s.i++
	for {
		if s.wide {
			s.i += run(s.b[s.i:], wide)
		} else {
			s.i += run(s.b[s.i:], ascii)
		}
		if s.i == len(s.b) {
			return escaped, s.fail("a string does not end")
		}
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return escaped, nil
		case c == '\\':
			escaped = true
			if err := s.escapes(); err != nil {
				return escaped, err
			}
		case c < 0x20:
			return escaped, s.fail("a control character stands unescaped in a string")
		default:
			if !utf8.Valid(s.b[s.i:]) {
				return escaped, s.fail("is not valid UTF-8")
			}
			s.wide = true
		}
	}
}

// escapes walks over a run of escapes and the plain bytes between them that
// stand near; it stops at a quote, at a long plain run, or where str must look.
func (s *scanner) escapes() error {
	plain := 0
	for s.i < len(s.b) && plain < 64 {
		c := s.b[s.i]
		switch {
		case c == '"':
			return nil
		case c == '\\':
			plain = 0
			if err := s.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return s.fail("a control character stands unescaped in a string")
		case c >= 0x80 && !s.wide:
			return nil
		default:
			plain++
			s.i++
		}
	}
	return nil
}

func (s *scanner) escape() error {
	if s.i+1 >= len(s.b) {
		return s.fail("a string does not end")
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return nil
	case 'u':
		r, ok := s.hex4(s.i + 2)
		if !ok || r >= 0xDC00 && r < 0xE000 {
			return s.fail("not a valid escape")
		}
		if r >= 0xD800 && r < 0xDC00 {
			if s.i+7 >= len(s.b) || s.b[s.i+6] != '\\' || s.b[s.i+7] != 'u' {
				return s.fail("half of a surrogate pair")
			}
			lo, ok := s.hex4(s.i + 8)
			if !ok || lo < 0xDC00 || lo >= 0xE000 {
				return s.fail("half of a surrogate pair")
			}
			s.i += 6
		}
		s.i += 6
		return nil
	}
	return s.fail("not a valid escape")
}

func (s *scanner) hex4(at int) (r rune, ok bool) {
	if at+4 > len(s.b) {
		return 0, false
	}
	for _, c := range s.b[at : at+4] {
		d := unhex[c]
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}
