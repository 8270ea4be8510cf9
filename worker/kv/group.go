package kv

import "slices"

// group is the blocks of one group and the list of the free ones.
type group struct {
	Group
	refs   []int32  // (blocks) tables that hold the block
	hash   []digest // (blocks) of the chain that the block ends
	parent []digest // (blocks) of the chain before it, compared on a hit
	hashed []bool   // (blocks)
	tokens []int32  // (blocks, BlockTokens) of hashed blocks, compared on a hit
	index  map[digest]int32

	// The free list, oldest first, linked through the blocks themselves so that
	// a hit takes its block out of the middle at once. -1 ends it.
	head, tail int32
	prev, next []int32
	free       int
	idleHashed int
}

func newGroup(g Group) group {
	if g.Blocks < 1 || (!g.State && g.BlockTokens < 1) {
		panic("BUG: kv: a group without blocks or with blocks without tokens")
	}
	n := group{
		Group: g, refs: make([]int32, g.Blocks), hash: make([]digest, g.Blocks), parent: make([]digest, g.Blocks), hashed: make([]bool, g.Blocks),
		index: map[digest]int32{}, prev: make([]int32, g.Blocks), next: make([]int32, g.Blocks),
		head: -1, tail: -1,
	}
	for id := range g.Blocks {
		n.pushBack(int32(id))
	}
	return n
}

// adopt takes the cached blocks of the first blocks of t's chain into group i
// of t. A block keeps its hash: it is still the same prefix.
func (g *group) adopt(t *Table, i, blocks, blockTokens int) {
	from := 0
	if g.Window > 0 {
		from = firstSeen(blocks*blockTokens, g.Window) / blockTokens
	}
	if g.State {
		return
	}
	for b := range blocks {
		if b < from {
			t.Groups[i] = append(t.Groups[i], -1)
			continue
		}
		id := g.index[t.chain[b]]
		if g.refs[id] == 0 {
			g.unlink(id)
			g.idleHashed--
		}
		g.refs[id]++
		t.Groups[i] = append(t.Groups[i], id)
	}
	t.behind[i] = from
}

// register makes a full, computed block findable. Of two blocks with the same
// tokens the first stays the one that is found.
func (g *group) register(id int32, hash, parent digest, tokens []int32) {
	if g.hashed[id] {
		return
	}
	if _, taken := g.index[hash]; taken {
		return
	}
	if g.tokens == nil {
		g.tokens = make([]int32, g.Blocks*g.BlockTokens)
	}
	g.hash[id], g.parent[id], g.hashed[id] = hash, parent, true
	g.index[hash] = id
	copy(g.tokens[int(id)*g.BlockTokens:], tokens)
}

// find reports whether a block ends the chain hash, goes on from the chain parent
// and has exactly these tokens.
func (g *group) find(hash, parent digest, tokens []int32) bool {
	id, ok := g.index[hash]
	return ok && g.parent[id] == parent && slices.Equal(g.tokens[int(id)*g.BlockTokens:(int(id)+1)*g.BlockTokens], tokens)
}

// release takes one reference off a block; the last one makes it free. A block
// that no prompt can hit goes to the front: it is used again first.
func (g *group) release(id int32) {
	g.refs[id]--
	switch {
	case g.refs[id] < 0:
		panic("BUG: kv: a block is released more often than it was taken")
	case g.refs[id] > 0:
	case g.hashed[id]:
		g.idleHashed++
		g.pushBack(id)
	default:
		g.pushFront(id)
	}
}

func (g *group) pushBack(id int32) {
	g.prev[id], g.next[id] = g.tail, -1
	if g.tail >= 0 {
		g.next[g.tail] = id
	} else {
		g.head = id
	}
	g.tail = id
	g.free++
}

func (g *group) pushFront(id int32) {
	g.prev[id], g.next[id] = -1, g.head
	if g.head >= 0 {
		g.prev[g.head] = id
	} else {
		g.tail = id
	}
	g.head = id
	g.free++
}

func (g *group) unlink(id int32) {
	if g.prev[id] >= 0 {
		g.next[g.prev[id]] = g.next[id]
	} else {
		g.head = g.next[id]
	}
	if g.next[id] >= 0 {
		g.prev[g.next[id]] = g.prev[id]
	} else {
		g.tail = g.prev[id]
	}
	g.free--
}
