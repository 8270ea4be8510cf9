package worker

import "slices"

// NGram is speculation by the text's own repetitions: what followed the last
// few tokens when they stood in the text before is guessed to follow again.
type NGram struct {
	Tokens int // guesses a step; 0: no speculation
	Max    int // longest and
	Min    int // shortest run of last tokens that is looked for
}

// guesser guesses what follows one text that grows. It remembers where each run of
// tokens stood first, so that a guess costs the same however long the text is.
type guesser struct {
	n      NGram
	read   int       // runs that end before here are known
	first  [][]int32 // by length: a table, by hash, of where a run begins, from 1 on; 0: free
	known  []int     // by length: runs in the table
	looked int       // places of the tables that were looked at
	hashes []uint64  // of the runs that end at a token, by length: room that is used again
}

func (n NGram) guesser() *guesser {
	lengths := max(0, n.Max-max(1, n.Min)+1)
	return &guesser{n: n, first: make([][]int32, lengths), known: make([]int, lengths)}
}

// guess returns up to n.Tokens tokens that may follow text, which begins with the text of
// the guess before. The longest run decides, and of its occurrences the first.
func (g *guesser) guess(text []int32) []int32 {
	for ; g.read < len(text)-1; g.read++ {
		g.remember(text, g.read)
	}
	shortest := max(1, g.n.Min)
	hashes := g.hash(text, len(text)-1)
	for n := min(g.n.Max, len(text)-1); n >= shortest; n-- {
		table := g.first[n-shortest]
		if len(table) == 0 {
			continue
		}
		if at := table[g.find(table, text, len(text)-n, n, hashes[n-1])]; at > 0 {
			i := int(at) - 1 + n
			return text[i:min(i+g.n.Tokens, len(text))]
		}
	}
	return nil
}

// remember takes note of the runs that end with the token at end.
func (g *guesser) remember(text []int32, end int) {
	shortest := max(1, g.n.Min)
	hashes := g.hash(text, end)
	for n := shortest; n <= min(g.n.Max, end+1); n++ {
		k := n - shortest
		if 2*(g.known[k]+1) > len(g.first[k]) {
			g.grow(k, text)
		}
		begin := end - n + 1
		if slot := &g.first[k][g.find(g.first[k], text, begin, n, hashes[n-1])]; *slot == 0 {
			*slot = int32(begin) + 1
			g.known[k]++
		}
	}
}

// find returns the slot of the run of n tokens that begins here, or a free one for it.
func (g *guesser) find(table []int32, text []int32, begin, n int, hash uint64) int {
	run := text[begin : begin+n]
	for slot := int(hash>>32) & (len(table) - 1); ; slot = (slot + 1) & (len(table) - 1) {
		g.looked++
		if at := int(table[slot]) - 1; at < 0 || slices.Equal(text[at:at+n], run) {
			return slot
		}
	}
}

// grow doubles a table.
func (g *guesser) grow(k int, text []int32) {
	n, old := k+max(1, g.n.Min), g.first[k]
	g.first[k] = make([]int32, max(64, 2*len(old)))
	for _, at := range old {
		if at > 0 {
			begin := int(at) - 1
			h := hashed(text[begin : begin+n])
			g.first[k][g.find(g.first[k], text, begin, n, h)] = at
		}
	}
}

// hash returns the hashes of the runs that end with the token at end, the shortest first.
func (g *guesser) hash(text []int32, end int) []uint64 {
	out := g.hashes[:0]
	h := uint64(0)
	for n := 1; n <= min(g.n.Max, end+1); n++ {
		h = mixed(h, text[end-n+1])
		out = append(out, h)
	}
	g.hashes = out
	return out
}

// hashed is the hash of one run, from its last token to its first.
func hashed(run []int32) (h uint64) {
	for _, token := range slices.Backward(run) {
		h = mixed(h, token)
	}
	return h
}

func mixed(h uint64, token int32) uint64 {
	h = (h ^ uint64(uint32(token))) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// draft gives the running sequences that lack one token guesses of those
// after it. The step verifies them with the same random numbers that would
// have chosen the tokens one by one, so they change no output.
func (e *Engine) draft() {
	if e.cfg.NGram.Tokens == 0 {
		return
	}
	for _, q := range e.sched.running {
		if q.prefilling() || !q.rules.plain() {
			continue
		}
		if q.guesser == nil {
			q.guesser = e.cfg.NGram.guesser()
		}
		room := min(q.rules.params.MaxTokens-len(q.Output()), e.cfg.MaxModelLen-len(q.Tokens)) - 1
		guess := q.guesser.guess(q.Tokens)
		q.Drafts = slices.Clone(guess[:max(0, min(len(guess), room))])
	}
}
