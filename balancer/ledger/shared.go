package ledger

// shared is one segment of a prompt that live requests at a worker have in
// common: how many they are, and the tokens that are counted for all of them
// once.
type shared struct {
	n      int32
	tokens int64
}

// nextMark returns the end of the segment that begins behind n chunks. Segments
// grow with their distance, so that a long prompt is accounted in a few dozen
// and what two prompts have in common is known to an eighth. Where the chunks
// themselves grow, four are an eighth.
func nextMark(n int) int {
	if n >= evenChunks {
		return n + octave/8
	}
	return n + max(1, n/8)
}

// cover enters the chunks of a charge's prompt at its worker. What another
// live request there has entered already is not counted again.
func (w *Worker) cover(c *Charge, a *Ask) {
	if len(a.Chunks) == 0 || a.ChunkTokens <= 0 {
		return
	}
	if w.shared == nil {
		w.shared = map[uint64]shared{}
	}
	c.chunks = a.Chunks
	for from := 0; from < len(c.chunks); {
		end := min(nextMark(from), len(c.chunks))
		s := w.shared[c.chunks[end-1]]
		if s.n == 0 {
			units := 0
			for _, d := range c.chunks[from:end] {
				units += unitsOf(d)
			}
			s.tokens = int64(float64(units) * a.ChunkTokens)
			w.kv += s.tokens
			w.common += s.tokens
		}
		s.n++
		w.shared[c.chunks[end-1]] = s
		c.covered += s.tokens
		from = end
	}
}

// uncover takes a charge's chunks out again; what nobody holds any more is
// released with it.
func (w *Worker) uncover(c *Charge) {
	for from := 0; from < len(c.chunks); {
		end := min(nextMark(from), len(c.chunks))
		d := c.chunks[end-1]
		s := w.shared[d]
		if s.n--; s.n > 0 {
			w.shared[d] = s
		} else {
			w.kv -= s.tokens
			w.common -= s.tokens
			delete(w.shared, d)
		}
		from = end
	}
	c.chunks, c.covered = nil, 0
}

// covered returns the tokens of a prompt that live requests at the worker hold
// already.
func (w *Worker) covered(a *Ask) (tokens int64) {
	for from := 0; from < len(a.Chunks); {
		end := min(nextMark(from), len(a.Chunks))
		s := w.shared[a.Chunks[end-1]]
		if s.n == 0 {
			break
		}
		tokens += s.tokens
		from = end
	}
	return min(tokens, a.Prompt)
}

// live returns the tokens of a prompt that need no room of their own at the
// worker. What another door's requests hold there is not known; what is cached
// there, hit, is taken for it, since doors share their prefixes.
func (w *Worker) live(a *Ask, hit int64) int64 {
	if w.elsewhere.InFlight > 0 {
		return max(w.covered(a), hit)
	}
	return w.covered(a)
}

// own is what a charge books beside the chunks that others may share.
func (c *Charge) own() int64 {
	return max(c.prompt+max(c.expect, c.generated.Load())-c.covered, 0)
}
