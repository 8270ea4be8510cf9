package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// class is the set of properties of a character that pre-tokenizers ask for.
type class uint16

const (
	upper   class = 1 << iota // Lu, Lt
	lower                     // Ll
	other                     // Lm, Lo: letters without case
	mark                      // M
	number                    // N
	space                     // White_Space
	newline                   // \r, \n
	punct                     // P
	sign                      // S
	decimal                   // Nd
	wordly                    // what else belongs to \w: Pc, join controls, Nl, circled letters

	letter = upper | lower | other
	word   = letter | mark | decimal | wordly
)

// classTable holds the class of each character in blocks of 256, equal
// blocks once.
type classTable struct {
	ascii  [utf8.RuneSelf]class
	block  [0x1100]uint16
	blocks [][256]class
}

var classes = buildClasses()

func buildClasses() *classTable {
	all := make([]class, 0x110000)
	set := func(c class, tables ...*unicode.RangeTable) {
		for _, t := range tables {
			for _, r := range t.R16 {
				for x := uint32(r.Lo); x <= uint32(r.Hi); x += uint32(r.Stride) {
					all[x] |= c
				}
			}
			for _, r := range t.R32 {
				for x := r.Lo; x <= r.Hi; x += r.Stride {
					all[x] |= c
				}
			}
		}
	}
	set(upper, unicode.Lu, unicode.Lt)
	set(lower, unicode.Ll)
	set(other, unicode.Lm, unicode.Lo)
	set(mark, unicode.M)
	set(number, unicode.N)
	set(decimal, unicode.Nd)
	set(space, unicode.White_Space)
	set(punct, unicode.P)
	set(sign, unicode.S)
	set(wordly, unicode.Pc, unicode.Join_Control, unicode.Nl, unicode.Other_Alphabetic)
	all['\r'] |= newline
	all['\n'] |= newline

	t := &classTable{}
	copy(t.ascii[:], all)
	known := map[[256]class]uint16{}
	for b := range t.block {
		key := [256]class(all[b<<8:])
		n, ok := known[key]
		if !ok {
			n = uint16(len(t.blocks))
			known[key] = n
			t.blocks = append(t.blocks, key)
		}
		t.block[b] = n
	}
	return t
}

// of returns the class of a character.
func (t *classTable) of(r rune) class {
	return t.blocks[t.block[r>>8]][r&0xFF]
}

// at returns the class and the length of the character at s[i].
func (t *classTable) at(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return t.ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.of(r), n
}

// run returns the end of the characters from s[i] that have a class of c.
func (t *classTable) run(s string, i int, c class) int {
	for i < len(s) {
		got, n := t.at(s, i)
		if got&c == 0 {
			break
		}
		i += n
	}
	return i
}

// runNot returns the end of the characters from s[i] that have no class of c.
func (t *classTable) runNot(s string, i int, c class) int {
	for i < len(s) {
		got, n := t.at(s, i)
		if got&c != 0 {
			break
		}
		i += n
	}
	return i
}
