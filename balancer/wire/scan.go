package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// scanner walks over JSON without making anything of it.
type scanner struct {
	b []byte
	i int
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
// whether it holds escapes.
func (s *scanner) str() (escaped bool, err error) {
	s.i++
	for {
		q := bytes.IndexByte(s.b[s.i:], '"')
		if q < 0 {
			return escaped, s.fail("a string does not end")
		}
		run := s.b[s.i : s.i+q]
		e := bytes.IndexByte(run, '\\')
		if e < 0 {
			if at := control(run); at >= 0 {
				s.i += at
				return escaped, s.fail("a control character stands unescaped in a string")
			}
			s.i += q + 1
			return escaped, nil
		}
		if at := control(run[:e]); at >= 0 {
			s.i += at
			return escaped, s.fail("a control character stands unescaped in a string")
		}
		s.i += e
		escaped = true
		if err := s.escapes(); err != nil {
			return escaped, err
		}
	}
}

// escapes walks over a run of escapes and the plain bytes between them that
// stand near; it stops at a quote or at a long plain run.
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

// control returns where the first byte below 0x20 stands, or -1. Long runs are
// looked at in steps of 32 bytes, with one branch each.
func control(b []byte) int {
	const low, top = 0x2020202020202020, 0x8080808080808080
	i := 0
	for ; len(b)-i >= 32; i += 32 {
		p := (*[32]byte)(b[i:])
		v, w := binary.LittleEndian.Uint64(p[:8]), binary.LittleEndian.Uint64(p[8:16])
		x, y := binary.LittleEndian.Uint64(p[16:24]), binary.LittleEndian.Uint64(p[24:])
		if ((v-low)&^v|(w-low)&^w|(x-low)&^x|(y-low)&^y)&top != 0 {
			break
		}
	}
	for ; i+8 <= len(b); i += 8 {
		if v := binary.LittleEndian.Uint64(b[i:]); (v-low)&^v&top != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if b[i] < 0x20 {
			return i
		}
	}
	return -1
}
