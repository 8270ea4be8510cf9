package grammar

import (
	"unicode/utf8"
)

// runeRanges returns what matches one character of the ranges, which come in
// pairs lo, hi, as UTF-8. Surrogates are left out.
func runeRanges(ranges []rune) expr {
	var alts altExpr
	ascii := &byteSet{}
	hasASCII := false
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := ranges[i], min(ranges[i+1], utf8.MaxRune)
		if lo < 0x80 {
			ascii.add(byte(lo), byte(min(hi, 0x7F)))
			hasASCII = true
			lo = 0x80
		}
		for _, limit := range []rune{0x7FF, 0xD7FF, 0xFFFF, utf8.MaxRune} {
			if lo > 0xD7FF && lo < 0xE000 {
				lo = 0xE000
			}
			if lo <= min(hi, limit) {
				alts = appendRange(alts, lo, min(hi, limit))
				lo = limit + 1
			}
		}
	}
	if hasASCII {
		alts = append(alts, setExpr(ascii))
	}
	return alts
}

// appendRange adds the sequences for [lo, hi], all of one length in UTF-8.
// It cuts the range where a continuation byte wraps, so that each sequence is
// a product of byte ranges.
func appendRange(alts altExpr, lo, hi rune) altExpr {
	for shift := 6; shift <= 18; shift += 6 {
		mask := rune(1)<<shift - 1
		if lo&^mask == hi&^mask {
			continue
		}
		if lo&mask != 0 {
			alts = appendRange(alts, lo, lo|mask)
			return appendRange(alts, (lo|mask)+1, hi)
		}
		if hi&mask != mask {
			alts = appendRange(alts, lo, hi&^mask-1)
			return appendRange(alts, hi&^mask, hi)
		}
	}
	var a, b [utf8.UTFMax]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	seq := make(seqExpr, n)
	for i := range seq {
		seq[i] = setExpr(byteRange(a[i], b[i]))
	}
	return append(alts, seq)
}
