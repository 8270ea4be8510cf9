package sim

import "container/list"

// pieces is a Batch's prefix cache. The zero value is ready.
type pieces struct {
	known map[uint64]*block
	idle  list.List // of digests, the most recently used in front
}

// match is how many pieces of a prompt are there, and how many of these nobody
// holds. A token at least is left to compute.
func (p *pieces) match(s *Sequence, tokens int) (hit, idle int) {
	for _, d := range s.Pieces {
		k := p.known[d]
		if k == nil || (hit+1)*tokens >= s.tokens() {
			break
		}
		hit++
		if k.holders == 0 {
			idle++
		}
	}
	return hit, idle
}

// hold makes a sequence a holder of the first n pieces of its prompt.
func (p *pieces) hold(s *Sequence, n int) {
	for _, d := range s.Pieces[:n] {
		k := p.known[d]
		if k.holders++; k.holders == 1 {
			p.idle.Remove(k.at)
			k.at = nil
		}
	}
	s.indexed = n
}

// drop ends what a sequence holds and returns how many pieces nobody holds any
// more. The end of a prefix is evicted before its beginning.
func (p *pieces) drop(s *Sequence) (n int) {
	for i := s.indexed - 1; i >= 0; i-- {
		k := p.known[s.Pieces[i]]
		if k.holders--; k.holders == 0 {
			k.at = p.idle.PushFront(s.Pieces[i])
			n++
		}
	}
	s.indexed = 0
	return n
}

// computed offers a sequence's prompt to others as far as it is computed, and returns
// how many pieces are new. What another has computed too stays its own.
func (p *pieces) computed(s *Sequence, tokens int) (n int) {
	for s.indexed < len(s.Pieces) && (s.indexed+1)*tokens <= min(s.done, s.Prompt) {
		d := s.Pieces[s.indexed]
		if p.known[d] != nil {
			return n
		}
		if p.known == nil {
			p.known = map[uint64]*block{}
		}
		p.known[d] = &block{holders: 1}
		s.indexed++
		n++
	}
	return n
}

// evict forgets the piece that has gone unused longest.
func (p *pieces) evict() {
	last := p.idle.Back()
	delete(p.known, last.Value.(uint64))
	p.idle.Remove(last)
}
