package kv

import "fmt"

// Group describes the blocks of one group of layers.
type Group struct {
	Blocks      int  // how many there are
	BlockTokens int  // tokens that one holds; the same for all groups but State
	Window      int  // tokens that a query sees, itself included; 0: all
	State       bool // one block a sequence, whatever its length
}

// Options are what a cache is made from.
type Options struct {
	Groups      []Group
	PrefixCache bool

	// Tokens is how many the cache holds where no group keeps every token, so that
	// blocks do not say it; 0: as many as the first group's blocks.
	Tokens int

	// Key is that of the chain of digests, drawn at random by a server.
	Key Key
}

// Cache is the account of all blocks.
type Cache struct {
	groups      []group
	blockTokens int
	cache       bool
	tokens      int // Options.Tokens
	key         Key
	evicted     []int32 // blocks of the first group that lost their hash since TakeEvicted
	queries     int64
	hits        int64
}

// Table is what one sequence holds. The zero Table holds nothing; Salt and
// Adapter are to be set before first use.
type Table struct {
	Salt    string // sequences of different salts share nothing
	Adapter uint64 // and those of different adapters do not either

	// Media are the tokens that stand for what is no text, in their order: ids
	// alone would make all pictures one.
	Media []Media

	// Groups has the block ids of each group: entry i holds tokens
	// [i·BlockTokens, (i+1)·BlockTokens), -1 behind a sliding window.
	Groups [][]int32

	chain      []digest // of each full block of the tokens, as far as computed
	registered int      // blocks offered to the prefix cache so far
	behind     []int    // of each group: blocks already given back behind the window
}

// Media is tokens that stand for an item.
type Media struct {
	First, Count int
	Digest       [32]byte
}

// New makes a cache in which all blocks are free.
func New(o Options) *Cache {
	if len(o.Groups) == 0 {
		panic("BUG: kv: a cache without groups")
	}
	p := &Cache{cache: o.PrefixCache, tokens: o.Tokens, key: o.Key}
	for _, g := range o.Groups {
		p.groups = append(p.groups, newGroup(g))
		if g.State {
			p.cache = false // a state is the sum of all tokens: there is no part of it to share
			continue
		}
		if p.blockTokens != 0 && p.blockTokens != g.BlockTokens {
			panic(fmt.Sprintf("BUG: kv: groups with blocks of %d and %d tokens", p.blockTokens, g.BlockTokens))
		}
		p.blockTokens = g.BlockTokens
	}
	if p.blockTokens == 0 {
		p.blockTokens = 16 // of a model with recurrent state alone: the unit of accounts only
	}
	return p
}

// BlockTokens is how many tokens one block holds.
func (p *Cache) BlockTokens() int { return p.blockTokens }

// CapacityTokens is the number of tokens that fit when no prefix is shared,
// by the group that fills first.
func (p *Cache) CapacityTokens() int {
	least := -1
	for i := range p.groups {
		g := &p.groups[i]
		if g.State || g.Window > 0 {
			continue
		}
		if n := g.Blocks * p.blockTokens; least < 0 || n < least {
			least = n
		}
	}
	switch {
	case least >= 0:
		return least
	case p.tokens > 0:
		return p.tokens
	}
	return p.groups[0].Blocks * p.blockTokens
}

// UsedTokens is the room in blocks that some table holds, by the fullest group;
// where that keeps no text whole, its share of what the cache holds.
func (p *Cache) UsedTokens() int {
	g := p.fullest()
	if g.State || g.Window > 0 {
		return int(int64(g.Blocks-g.free) * int64(p.CapacityTokens()) / int64(g.Blocks))
	}
	return (g.Blocks - g.free) * p.blockTokens
}

// CachedTokens is the room in idle blocks that a prompt could still hit.
func (p *Cache) CachedTokens() int {
	g := &p.groups[0]
	return g.idleHashed * p.blockTokens
}

// Usage is the used part of the fullest group, from 0 to 1.
func (p *Cache) Usage() float64 {
	g := p.fullest()
	return float64(g.Blocks-g.free) / float64(g.Blocks)
}

// Blocks is the number of blocks of the first group.
func (p *Cache) Blocks() int { return p.groups[0].Blocks }

// Counts are the prompt tokens looked up in the prefix cache and found there.
func (p *Cache) Counts() (queries, hits int64) { return p.queries, p.hits }

// fullest is the group whose blocks are scarcest, window and state groups
// included only when there is no other.
func (p *Cache) fullest() *group {
	best := &p.groups[0]
	for i := range p.groups {
		g := &p.groups[i]
		if g.State || g.Window > 0 {
			continue
		}
		if best.State || best.Window > 0 || g.free*best.Blocks < best.free*g.Blocks {
			best = g
		}
	}
	return best
}

// Admit takes the blocks of the longest cached prefix of tokens and room for
// reserve tokens in the groups that keep them all. It returns how many tokens
// are covered by the prefix: never the last one, which has to be computed for
// its logits. When there is no room, nothing is taken.
func (p *Cache) Admit(t *Table, tokens []int32, reserve int, lookUp bool) (hit int, ok bool) {
	if len(t.Groups) != 0 {
		panic("BUG: kv: Admit of a table that holds blocks")
	}
	blocks := 0
	if p.cache && lookUp {
		blocks = p.match(t, tokens)
	}
	if !p.room(t, blocks, reserve) {
		return 0, false
	}
	t.Groups = make([][]int32, len(p.groups))
	t.behind = make([]int, len(p.groups))
	for i := range p.groups {
		p.groups[i].adopt(t, i, blocks, p.blockTokens)
	}
	t.registered = blocks
	for i := range p.groups {
		g := &p.groups[i]
		switch {
		case g.State:
			t.Groups[i] = append(t.Groups[i], p.take(i))
		case g.Window == 0:
			p.fill(t, i, reserve)
		}
	}
	if p.cache && lookUp {
		p.queries += int64(len(tokens))
		p.hits += int64(blocks * p.blockTokens)
	}
	return blocks * p.blockTokens, true
}

// room reports whether Admit would find its blocks.
func (p *Cache) room(t *Table, hit, reserve int) bool {
	for i := range p.groups {
		g := &p.groups[i]
		need := 0
		switch {
		case g.State:
			need = 1
		case g.Window > 0:
			need = min(p.count(reserve), p.count(g.Window)+1) - min(hit, p.count(g.Window))
		default:
			need = p.count(reserve) - hit
		}
		from := 0
		if g.Window > 0 {
			from = firstSeen(hit*p.blockTokens, g.Window) / p.blockTokens
		}
		for b := from; b < hit; b++ {
			if id := g.index[t.chain[b]]; g.refs[id] == 0 {
				need++ // an idle block that the prefix takes out of the free list
			}
		}
		if need > g.free {
			return false
		}
	}
	return true
}

// Extend makes sure that t has room for tokens up to upto, of which computed
// are there already. Blocks that a window has left behind are given back
// first. When there is no room nothing more is taken and Extend says false.
func (p *Cache) Extend(t *Table, computed, upto int) bool {
	for i := range p.groups {
		p.trim(t, i, computed)
	}
	for i := range p.groups {
		g := &p.groups[i]
		if !g.State && p.count(upto)-len(t.Groups[i]) > g.free {
			return false
		}
	}
	for i := range p.groups {
		if !p.groups[i].State {
			p.fill(t, i, upto)
		}
	}
	return true
}

// Commit tells the cache that the first computed of tokens have been computed:
// blocks that are full now can be found by other prompts from here on, and not
// a step earlier.
func (p *Cache) Commit(t *Table, tokens []int32, computed int) {
	if !p.cache {
		return
	}
	full := computed / p.blockTokens
	if full == t.registered {
		return // as in most steps
	}
	p.extendChain(t, tokens, full)
	for ; t.registered < full; t.registered++ {
		b := t.registered
		block := tokens[b*p.blockTokens : (b+1)*p.blockTokens]
		for i := range p.groups {
			if id := t.Groups[i][b]; id >= 0 {
				p.groups[i].register(id, t.chain[b], p.parent(t, b), block)
			}
		}
	}
}

// Fork gives dst the full blocks of src that hold the first tokens, shared.
// It returns how many tokens they cover; like a prefix hit, never all.
func (p *Cache) Fork(dst, src *Table, tokens, reserve int) (covered int, ok bool) {
	blocks := max(0, tokens-1) / p.blockTokens
	for i := range p.groups {
		g := &p.groups[i]
		if g.State || g.Window > 0 {
			return 0, false // what a window or a state has left behind is not there to share
		}
		if p.count(reserve)-blocks > g.free {
			return 0, false
		}
	}
	dst.Groups = make([][]int32, len(p.groups))
	dst.behind = make([]int, len(p.groups))
	for i := range p.groups {
		for _, id := range src.Groups[i][:blocks] {
			p.groups[i].refs[id]++
			dst.Groups[i] = append(dst.Groups[i], id)
		}
		p.fill(dst, i, reserve)
	}
	dst.registered = min(blocks, src.registered)
	dst.chain = append(dst.chain[:0], src.chain[:min(len(src.chain), blocks)]...)
	return blocks * p.blockTokens, true
}

// Release gives back all that t holds, the tail first, so that of one
// sequence the blocks that most prompts could share are evicted last.
func (p *Cache) Release(t *Table) {
	for i := range t.Groups {
		g := &p.groups[i]
		for b := len(t.Groups[i]) - 1; b >= 0; b-- {
			if id := t.Groups[i][b]; id >= 0 {
				g.release(id)
			}
		}
	}
	t.Groups, t.behind, t.registered = nil, nil, 0
}

// Reset forgets all prefixes. It refuses while a table holds blocks.
func (p *Cache) Reset() bool {
	for i := range p.groups {
		if p.groups[i].free != p.groups[i].Blocks {
			return false
		}
	}
	for i := range p.groups {
		g := &p.groups[i]
		for id := range g.refs {
			p.drop(i, int32(id))
		}
	}
	return true
}

// TakeEvicted returns the blocks of the first group whose prefix has left the
// cache since the last call. The slice is valid until the next call.
func (p *Cache) TakeEvicted() []int32 {
	out := p.evicted
	p.evicted = nil
	return out
}

func (p *Cache) count(tokens int) int { return (tokens + p.blockTokens - 1) / p.blockTokens }

// fill appends blocks to group i of t until it holds tokens.
func (p *Cache) fill(t *Table, i, tokens int) {
	for len(t.Groups[i])*p.blockTokens < tokens {
		t.Groups[i] = append(t.Groups[i], p.take(i))
	}
}

// trim gives back the blocks of group i that no query from position computed
// on can see.
func (p *Cache) trim(t *Table, i, computed int) {
	g := &p.groups[i]
	if g.Window == 0 || g.State {
		return
	}
	first := min(firstSeen(computed, g.Window)/p.blockTokens, len(t.Groups[i]))
	for ; t.behind[i] < first; t.behind[i]++ {
		if id := t.Groups[i][t.behind[i]]; id >= 0 {
			g.release(id)
			t.Groups[i][t.behind[i]] = -1
		}
	}
}

// firstSeen is the first position that the query at position sees.
func firstSeen(position, window int) int { return max(0, position-window+1) }

// take hands out the block of group i that was idle longest; the caller has
// made sure that there is one.
func (p *Cache) take(i int) int32 {
	g := &p.groups[i]
	id := g.head
	if id < 0 {
		panic("BUG: kv: a block is taken where none is free")
	}
	p.drop(i, id)
	g.unlink(id)
	g.refs[id] = 1
	return id
}

// drop takes the prefix hash off a block.
func (p *Cache) drop(i int, id int32) {
	g := &p.groups[i]
	if !g.hashed[id] {
		return
	}
	delete(g.index, g.hash[id])
	g.hashed[id] = false
	if g.refs[id] == 0 {
		g.idleHashed--
	}
	if i == 0 {
		p.evicted = append(p.evicted, id)
	}
}
