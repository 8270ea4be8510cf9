package grammar

import (
	"bytes"
	"sort"
	"sync"
)

// Vocab is a vocabulary as masks need it: a trie of the bytes of all tokens,
// in the order of a walk. It is made once for a tokenizer, and all grammars
// share it.
type Vocab struct {
	size   int
	tokens [][]byte
	ends   []int32 // tokens that end an output
	ids    map[string]int32

	// The trie without its root, node by node as a walk meets them.
	char  []byte
	depth []int32 // 1 for the first byte of a token
	skip  []int32 // the node behind the subtree
	first []int32 // the node's tokens are list[first[n]:first[n+1]]
	list  []int32
	tall  []int32 // the longest token of the subtree, in bytes
	deep  int     // the greatest depth

	mu     sync.Mutex
	shared map[[32]byte]*local // of automata that many grammars have
	short  map[int32][]uint32  // the tokens of up to so many bytes
}

// maxPlanned is the longest token, in bytes, that a shortest completion is
// planned with.
const maxPlanned = 32

// NewVocab makes a vocabulary of the tokens' bytes, by id. Tokens without
// bytes (special ones: pass nil for them) are never allowed, but for those
// that end an output, which are allowed where it is complete.
func NewVocab(tokens [][]byte, ends []int32) *Vocab {
	v := &Vocab{size: len(tokens), tokens: tokens, ends: ends, ids: map[string]int32{}, shared: map[[32]byte]*local{}, short: map[int32][]uint32{}}
	isEnd := map[int32]bool{}
	for _, id := range ends {
		isEnd[id] = true
	}
	var order []int32
	for id, b := range tokens {
		if len(b) == 0 || isEnd[int32(id)] {
			continue
		}
		order = append(order, int32(id))
		if _, ok := v.ids[string(b)]; !ok && len(b) <= maxPlanned {
			v.ids[string(b)] = int32(id)
		}
	}
	sort.Slice(order, func(i, j int) bool {
		if c := bytes.Compare(tokens[order[i]], tokens[order[j]]); c != 0 {
			return c < 0
		}
		return order[i] < order[j]
	})
	v.build(order)
	return v
}

// build lays the trie out from the tokens in order of their bytes.
func (v *Vocab) build(order []int32) {
	var open []int32 // the nodes from the root to the token before
	closeTo := func(depth int) {
		for len(open) > depth {
			v.skip[open[len(open)-1]] = int32(len(v.char))
			open = open[:len(open)-1]
		}
	}
	var before []byte
	for _, id := range order {
		b := v.tokens[id]
		common := 0
		for common < len(b) && common < len(before) && b[common] == before[common] {
			common++
		}
		closeTo(common)
		for i := common; i < len(b); i++ {
			open = append(open, int32(len(v.char)))
			v.char = append(v.char, b[i])
			v.depth = append(v.depth, int32(i+1))
			v.skip = append(v.skip, 0)
			v.first = append(v.first, int32(len(v.list)))
		}
		v.list = append(v.list, id)
		v.deep = max(v.deep, len(b))
		before = b
	}
	closeTo(0)
	v.first = append(v.first, int32(len(v.list)))
	v.tall = make([]int32, len(v.char))
	for n := len(v.char) - 1; n >= 0; n-- {
		v.tall[n] = v.depth[n]
		for c := int32(n) + 1; c < v.skip[n]; c = v.skip[c] {
			v.tall[n] = max(v.tall[n], v.tall[c])
		}
	}
}

// Words returns the length of a mask: a bit for each token, 32 to a word.
func (v *Vocab) Words() int { return (v.size + 31) / 32 }

// shorter returns the tokens of up to most bytes, as bits.
func (v *Vocab) shorter(most int32) []uint32 {
	most = min(most, int32(v.deep))
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.short[most]; s != nil {
		return s
	}
	s := make([]uint32, v.Words())
	for _, t := range v.list {
		if len(v.tokens[t]) <= int(most) {
			s[t>>5] |= 1 << (t & 31)
		}
	}
	v.short[most] = s
	return s
}

// plan returns the fewest tokens that spell text from each of its bytes on,
// never where that is impossible; entry len(text) is 0.
func (v *Vocab) plan(text []byte) []int32 {
	n := make([]int32, len(text)+1)
	for i := len(text) - 1; i >= 0; i-- {
		n[i] = never
		for j := i + 1; j <= min(len(text), i+maxPlanned); j++ {
			if n[j] >= n[i]-1 {
				continue
			}
			if _, ok := v.ids[string(text[i:j])]; ok {
				n[i] = n[j] + 1
			}
		}
	}
	return n
}
