package tokenizer

// classScanner finds characters of a class: each on its own, or runs of them.
type classScanner struct {
	in         class
	run        bool
	asciiSigns bool // the signs of ASCII count, too, as in BERT's punctuation
}

func (c classScanner) next(s string, i int) (int, int) {
	for i < len(s) {
		got, n := classes.at(s, i)
		if got&c.in != 0 || c.asciiSigns && s[i] < 0x80 && got&sign != 0 {
			if c.run {
				return i, classes.run(s, i+n, c.in)
			}
			return i, i + n
		}
		i += n
	}
	return i, i
}
