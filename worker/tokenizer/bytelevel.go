package tokenizer

// A byte-level vocabulary spells each byte as one printable character: the
// printable ones of Latin-1 as themselves, the other 68 as U+0100 onwards.

// byteSpelling returns the character of each byte, and the byte of each
// character below U+0144 (-1 where there is none).
func byteSpelling() (runes [256]rune, bytes [0x144]int16) {
	for i := range bytes {
		bytes[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		printable := b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE
		if !printable {
			r = next
			next++
		}
		runes[b] = r
		bytes[r] = int16(b)
	}
	return runes, bytes
}

var spelledBytes, unspelledBytes = byteSpelling()

// spellBytes returns text with every byte spelled as a character.
func spellBytes(text string) string {
	out := make([]rune, 0, len(text))
	for i := range len(text) {
		out = append(out, spelledBytes[text[i]])
	}
	return string(out)
}

// unspellBytes returns the bytes that s spells. It reports false if some
// character spells none.
func unspellBytes(s string) ([]byte, bool) {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r < 0 || int(r) >= len(unspelledBytes) || unspelledBytes[r] < 0 {
			return nil, false
		}
		out = append(out, byte(unspelledBytes[r]))
	}
	return out, true
}
