package tokenizer

import "math/bits"

// byteTrie holds the tokens of a vocabulary by their bytes. Its edges lie in
// one hash table, since a vocabulary of 250 000 tokens has two million.
type byteTrie struct {
	edges []trieEdge
	shift uint
	token []int32 // by node: the token that ends there, -1 for none
}

type trieEdge struct {
	key  uint64 // node << 8 | byte, plus 1; 0: free
	node int32
}

// newByteTrie returns a trie for texts of at most total bytes together.
func newByteTrie(total int) *byteTrie {
	log := max(bits.Len(uint(2*total)), 4)
	return &byteTrie{edges: make([]trieEdge, 1<<log), shift: uint(64 - log), token: []int32{-1}}
}

// slot returns the place of an edge, or the free place where it belongs.
func (t *byteTrie) slot(node int32, c byte) (e *trieEdge, key uint64) {
	key = (uint64(node)<<8 | uint64(c)) + 1
	for i := (key * 0x9E3779B97F4A7C15) >> t.shift; ; i = (i + 1) & uint64(len(t.edges)-1) {
		if e = &t.edges[i]; e.key == key || e.key == 0 {
			return e, key
		}
	}
}

func (t *byteTrie) child(node int32, c byte) (int32, bool) {
	e, _ := t.slot(node, c)
	return e.node, e.key != 0
}

func (t *byteTrie) add(s string, id int32) {
	node := int32(0)
	for i := range len(s) {
		e, key := t.slot(node, s[i])
		if e.key == 0 {
			*e = trieEdge{key, int32(len(t.token))}
			t.token = append(t.token, -1)
		}
		node = e.node
	}
	t.token[node] = id
}
