package sim

import "slices"

// Batch decides, step by step, who computes how much, as vLLM's scheduler does. First
// those that run go on, in the order of their admission: a token each, or as much of
// a prompt as the step's budget has left. Then those that wait are admitted, first
// come first served, while there is room for all of their tokens; KV is taken
// only as they are computed. Who finds no room for its next token sends the last
// admitted back to the head of those that wait, its KV forgotten.
type Batch struct {
	Blocks int // of KV
	Block  int // tokens of a block
	Piece  int // tokens of a piece of a prompt that others may have too; 0: a block
	Budget int // tokens of a step
	Seats  int // sequences at once

	Preemptions int

	used    int
	pieces  pieces
	waiting []*Sequence
	running []*Sequence
}

// Sequence is one answer in a Batch.
type Sequence struct {
	Prompt int      // tokens
	Out    int      // tokens generated
	Pieces []uint64 // chained digests of the prompt's pieces that others may have too
	Cached int      // tokens of the prompt that were there before

	indexed int // of Pieces, those that others may hit
	done    int // tokens computed
	now     int // tokens that this step computes
	blocks  int
}

func (s *Sequence) tokens() int { return s.Prompt + s.Out }

// Step is the work of one step.
type Step struct {
	Decodes  int // sequences that compute their newest token alone
	Prefills int // tokens of prompts, or of what preemption forgot
	Pairs    float64
	Context  int         // tokens that the decodes read
	Say      []*Sequence // get a token at the step's end
}

// Add takes a sequence in.
func (b *Batch) Add(s *Sequence) { b.waiting = append(b.waiting, s) }

// Remove takes a sequence out, ended or given up.
func (b *Batch) Remove(s *Sequence) {
	b.free(s)
	same := func(other *Sequence) bool { return other == s }
	b.waiting, b.running = slices.DeleteFunc(b.waiting, same), slices.DeleteFunc(b.running, same)
}

// Counts are the sequences that run and wait, and the share of KV that is taken.
func (b *Batch) Counts() (running, waiting int, usage float64) {
	return len(b.running), len(b.waiting), float64(b.used) / float64(b.Blocks)
}

func (b *Batch) free(s *Sequence) {
	b.used -= s.blocks + b.pieces.drop(s)*b.perPiece()
	s.blocks, s.done, s.now = 0, 0, 0
	b.evict()
}

// perPiece is the blocks of a piece.
func (b *Batch) perPiece() int { return max(1, b.Piece/b.Block) }

// piece is the tokens of a piece.
func (b *Batch) piece() int { return b.perPiece() * b.Block }

// evict forgets pieces that nobody holds until all fits.
func (b *Batch) evict() {
	for b.used+b.pieces.idle.Len()*b.perPiece() > b.Blocks && b.pieces.idle.Len() > 0 {
		b.pieces.evict()
	}
}

// lacks is how many blocks more a sequence needs to hold so many tokens.
func (b *Batch) lacks(s *Sequence, tokens int) int {
	return max(0, (tokens+b.Block-1)/b.Block-s.blocks-s.indexed*b.perPiece())
}

func (b *Batch) take(s *Sequence, tokens int) {
	n := b.lacks(s, tokens)
	s.blocks += n
	b.used += n
	b.evict()
}

// admit lets a sequence run, if there is room for all of its tokens, or nobody else who
// could make some: what of its
// prompt is cached it holds from now on.
func (b *Batch) admit(s *Sequence) bool {
	hit, idle := b.pieces.match(s, b.piece())
	if b.used+b.lacks(s, s.tokens())-(hit-idle)*b.perPiece() > b.Blocks && len(b.running) > 0 {
		return false
	}
	b.pieces.hold(s, hit)
	b.used += idle * b.perPiece()
	s.done = hit * b.piece()
	if s.Out == 0 {
		s.Cached = s.done
	}
	return true
}

// Schedule begins a step; an empty one means that nobody can compute.
func (b *Batch) Schedule() Step {
	budget, preempted := b.Budget, false
	for i := 0; i < len(b.running) && budget > 0; i++ {
		s := b.running[i]
		n := min(s.tokens()-s.done, budget)
		fits := true
		for fits && len(b.running) > 1 && b.used+b.lacks(s, s.done+n) > b.Blocks {
			last := b.running[len(b.running)-1]
			b.free(last)
			b.running = b.running[:len(b.running)-1]
			b.waiting = slices.Insert(b.waiting, 0, last)
			b.Preemptions++
			preempted, fits = true, last != s
		}
		if !fits {
			break
		}
		b.take(s, s.done+n)
		s.now = n
		budget -= n
	}
	for budget > 0 && !preempted && len(b.waiting) > 0 && len(b.running) < b.Seats {
		s := b.waiting[0]
		if !b.admit(s) {
			break // and nobody overtakes it
		}
		s.now = min(s.tokens()-s.done, budget)
		b.take(s, s.done+s.now)
		budget -= s.now
		b.waiting, b.running = b.waiting[1:], append(b.running, s)
	}
	return b.step()
}

// step sums up what was scheduled.
func (b *Batch) step() (st Step) {
	for _, s := range b.running {
		switch {
		case s.now == 0:
			continue
		case s.now == 1 && s.Out > 0:
			st.Decodes++
			st.Context += s.done
		default:
			st.Prefills += s.now
			st.Pairs += float64(s.now) * (float64(s.done) + float64(s.now)/2)
		}
		if s.done+s.now == s.tokens() {
			st.Say = append(st.Say, s)
		}
	}
	return st
}

// Commit ends a step: what was scheduled is computed, and who came to its end has a
// token more.
func (b *Batch) Commit(st Step) {
	for _, s := range b.running {
		s.done += s.now
		s.now = 0
		s.blocks -= b.pieces.computed(s, b.piece()) * b.perPiece()
	}
	for _, s := range st.Say {
		if s.blocks+s.indexed > 0 { // it may have been removed meanwhile
			s.Out++
		}
	}
}
