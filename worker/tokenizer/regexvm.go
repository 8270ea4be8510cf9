package tokenizer

import "unicode/utf8"

// regexScanner runs a compiled pattern by backtracking, which gives the
// matches that Oniguruma gives. A search that takes long begins to remember
// where it failed, so that its work is bounded by the program's length times
// the text's.
type regexScanner struct{ code []inst }

func (re regexScanner) next(s string, i int) (int, int) {
	return re.on(s).next(s, i)
}

// on returns a scanner for the one text s, which remembers across matches.
func (re regexScanner) on(s string) scanner {
	return &regexRun{code: re.code, s: s, patience: 4096 + 64*len(s), budget: 1<<26 + 512*len(s)}
}

// regexRun is a regexScanner at work on one text.
type regexRun struct {
	code     []inst
	s        string
	stack    []thread
	steps    int
	patience int // steps after which failures are remembered
	budget   int // steps after which the search gives up: only look-ahead gets there
	failed   []uint64
}

// thread is a place in the program and in the text.
type thread struct{ pc, at int }

// maxMemory bounds the table of failures in bits: 64 MiB.
const maxMemory = 1 << 29

func (m *regexRun) next(s string, i int) (int, int) {
	for i < len(s) {
		if end := m.match(0, i, true); end > i {
			m.forgive(end)
			return i, end
		}
		if m.steps > m.budget {
			return i, len(s)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		i += n
	}
	return len(s), len(s)
}

// forgive forgets what was tried at the end of a match: the match itself went
// through there. All that was tried behind it failed.
func (m *regexRun) forgive(at int) {
	if m.failed == nil {
		return
	}
	for pc := range m.code {
		bit := at*len(m.code) + pc
		m.failed[bit>>6] &^= 1 << (bit & 63)
	}
}

// tried reports whether a fork was tried before, and notes that it is now.
func (m *regexRun) tried(t thread) bool {
	if m.failed == nil {
		bits := (len(m.s) + 1) * len(m.code)
		if m.steps < m.patience || bits > maxMemory {
			return false
		}
		m.failed = make([]uint64, bits/64+1)
	}
	bit := t.at*len(m.code) + t.pc
	if m.failed[bit>>6]&(1<<(bit&63)) != 0 {
		return true
	}
	m.failed[bit>>6] |= 1 << (bit & 63)
	return false
}

// match runs the program at pc on the text from at. It returns the end of the
// match, -1 if there is none. Programs within (look-ahead, atomic groups) do
// not remember: they may succeed where the whole fails.
func (m *regexRun) match(pc, at int, remember bool) int {
	base := len(m.stack)
	m.stack = append(m.stack, thread{pc, at})
	defer func() { m.stack = m.stack[:base] }()
	for len(m.stack) > base {
		t := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if end := m.run(t, remember); end >= 0 {
			return end
		}
		if m.steps > m.budget {
			return -1
		}
	}
	return -1
}

// run follows one thread until it matches or fails, and leaves on the stack
// what else could be tried.
func (m *regexRun) run(t thread, remember bool) int {
	for {
		m.steps++
		in := &m.code[t.pc]
		switch in.op {
		case opMatch:
			return t.at
		case opJump:
			t.pc = in.x
		case opSplit:
			if remember && m.tried(t) {
				return -1
			}
			m.stack = append(m.stack, thread{in.y, t.at})
			t.pc = in.x
		case opSet:
			if t.at >= len(m.s) {
				return -1
			}
			r, n := rune(m.s[t.at]), 1
			if r >= utf8.RuneSelf {
				r, n = utf8.DecodeRuneInString(m.s[t.at:])
			}
			if !in.set.has(r) {
				return -1
			}
			t.pc++
			t.at += n
		case opAtomic:
			end := m.match(in.x, t.at, false)
			if end < 0 {
				return -1
			}
			t.pc++
			t.at = end
		case opLook, opLookNot:
			if (m.match(in.x, t.at, false) >= 0) != (in.op == opLook) {
				return -1
			}
			t.pc++
		case opLineBegin:
			if t.at > 0 && m.s[t.at-1] != '\n' {
				return -1
			}
			t.pc++
		case opLineEnd:
			if t.at < len(m.s) && m.s[t.at] != '\n' {
				return -1
			}
			t.pc++
		}
	}
}
