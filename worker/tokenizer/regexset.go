package tokenizer

import (
	"fmt"
	"unicode"
)

// runeSet is a set of characters: what one character of a pattern matches.
type runeSet struct {
	ascii [128]bool // the answer for these, negation included
	items []setItem
	not   bool
}

// setItem is a part of a runeSet: a range, a class, a table or a set.
type setItem struct {
	lo, hi rune
	class  class
	table  *unicode.RangeTable
	set    *runeSet
	not    bool
}

func (it setItem) has(r rune) bool {
	var in bool
	switch {
	case it.set != nil:
		in = it.set.has(r)
	case it.table != nil:
		in = unicode.Is(it.table, r)
	case it.class != 0:
		in = classes.of(r)&it.class != 0
	default:
		in = r >= it.lo && r <= it.hi
	}
	return in != it.not
}

func (s *runeSet) has(r rune) bool {
	if r < 128 {
		return s.ascii[r]
	}
	return s.search(r)
}

func (s *runeSet) search(r rune) bool {
	for _, it := range s.items {
		if it.has(r) {
			return !s.not
		}
	}
	return s.not
}

// finish works out the table of ASCII. With fold, a set has every character
// whose other cases it has.
func (s *runeSet) finish(fold bool) *runeSet {
	if fold {
		for _, it := range s.items {
			if it.table != nil || it.class != 0 || it.set != nil || it.hi-it.lo > 0x400 {
				continue
			}
			for r := it.lo; r <= it.hi; r++ {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					s.items = append(s.items, setItem{lo: f, hi: f})
				}
			}
		}
	}
	for r := range s.ascii {
		s.ascii[r] = s.search(rune(r))
	}
	return s
}

// propertyItem returns what \p{name} stands for.
func propertyItem(name string, not bool) (setItem, error) {
	quick := map[string]class{
		"L": letter, "Lu": 0, "Ll": lower, "N": number, "Nd": decimal, "M": mark, "P": punct, "S": sign,
		"Letter": letter, "Number": number, "Punctuation": punct, "Symbol": sign, "Mark": mark, "Space": space, "White_Space": space,
	}
	if c := quick[name]; c != 0 {
		return setItem{class: c, not: not}, nil
	}
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts, unicode.Properties} {
		if t, ok := tables[name]; ok {
			return setItem{table: t, not: not}, nil
		}
	}
	return setItem{}, fmt.Errorf("unknown property %q", name)
}

// escapeItem returns what a letter after a backslash stands for, if it is a
// class.
func escapeItem(c rune) (setItem, bool) {
	switch c {
	case 's':
		return setItem{class: space}, true
	case 'S':
		return setItem{class: space, not: true}, true
	case 'd':
		return setItem{class: decimal}, true
	case 'D':
		return setItem{class: decimal, not: true}, true
	case 'w':
		return setItem{class: word}, true
	case 'W':
		return setItem{class: word, not: true}, true
	case 'h':
		return setItem{table: unicode.ASCII_Hex_Digit}, true
	}
	return setItem{}, false
}
