package tokenizer

import "unicode/utf8"

// replacement is U+FFFD in UTF-8.
const replacement = "\uFFFD"

// appendValid appends b to dst with one U+FFFD for each maximal subpart that
// is not UTF-8 (the rule of the Unicode standard, which Python and Rust
// follow). Without final, an incomplete character at the end is left out.
func appendValid(dst, b []byte, final bool) []byte {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			dst = append(dst, b[i])
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r != utf8.RuneError || n > 1 {
			dst = append(dst, b[i:i+n]...)
			i += n
			continue
		}
		n = subpart(b[i:])
		if i+n == len(b) && !final && n < needed(b[i]) {
			return dst
		}
		dst = append(dst, replacement...)
		i += n
	}
	return dst
}

// incomplete returns the length of the beginning of a character at the end
// of b, 0 if b ends with a whole one or with bytes that cannot become one.
func incomplete(b []byte) int {
	for n := 1; n <= 3 && n <= len(b); n++ {
		c := b[len(b)-n]
		if c&0xC0 == 0x80 {
			continue
		}
		if tail := b[len(b)-n:]; needed(c) > n && subpart(tail) == n {
			return n
		}
		return 0
	}
	return 0
}

// needed returns how many bytes a character has that begins with c.
func needed(c byte) int {
	switch {
	case c >= 0xC2 && c <= 0xDF:
		return 2
	case c >= 0xE0 && c <= 0xEF:
		return 3
	case c >= 0xF0 && c <= 0xF4:
		return 4
	}
	return 1
}

// subpart returns the length of the longest beginning of b that begins some
// character, at least 1.
func subpart(b []byte) int {
	n := needed(b[0])
	if n == 1 || len(b) < 2 {
		return 1
	}
	low, high := byte(0x80), byte(0xBF)
	switch b[0] {
	case 0xE0:
		low = 0xA0
	case 0xED:
		high = 0x9F
	case 0xF0:
		low = 0x90
	case 0xF4:
		high = 0x8F
	}
	if b[1] < low || b[1] > high {
		return 1
	}
	i := 2
	for i < n && i < len(b) && b[i]&0xC0 == 0x80 {
		i++
	}
	return i
}
